"""Imported, not called: only a cache of keys and values needs it."""
