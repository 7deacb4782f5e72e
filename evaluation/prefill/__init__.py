"""Fetches data and tokenizers, and turns them into the files that scoring reads offline."""
