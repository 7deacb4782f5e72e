"""Items that moved against the bridge, with their texts."""
