"""What a run has to make: the keys of scores and results, their records, and what the rules ask."""
