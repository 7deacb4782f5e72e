"""Compare two runs: match their checkpoints, and state which run is better from which step on."""
