"""Fetch data and tokenizers, and turn them into the files that scoring reads offline."""
