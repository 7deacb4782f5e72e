"""Runs code that a model wrote, without access to network, files, processes or its verdict."""
