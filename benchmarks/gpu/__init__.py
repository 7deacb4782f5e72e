"""Benchmark a GPU: `python -m benchmarks.gpu` needs no data and no network."""
