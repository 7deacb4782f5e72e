"""Compare a stage's steps with its bridge, pairwise; derive verdicts and the recommendation."""
