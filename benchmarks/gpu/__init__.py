"""What a GPU gives: `python -m benchmarks.gpu` needs torch, transformers and numpy, no data, no network."""
