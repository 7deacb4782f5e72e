"""Two runs compared: which checkpoints match, and which run is better from which step on."""
