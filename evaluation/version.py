"""The version of this package, which imports nothing; pyproject.toml reads it."""

__version__ = "1.0.0"
