"""What a GPU gives: `python -m benchmarks.gpu`, which runs on a bare machine too.

Imports nothing but torch, transformers, numpy and what they bring; only `prepare`, which makes the
file of requests beforehand, needs the project's whole environment.
"""
