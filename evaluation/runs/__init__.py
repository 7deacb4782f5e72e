"""Two runs compared: which checkpoints match, and which run is ahead from which step on."""
