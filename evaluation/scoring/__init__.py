"""Score a model: log-likelihoods by prefix tries, and generated answers, greedy or sampled."""
