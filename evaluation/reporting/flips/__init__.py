"""Questions, prompts and blocks that gained or lost against the bridge, with their texts."""
