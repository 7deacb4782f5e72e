"""Adapters that render tasks whose metrics run programs, which the project's own refuse; none is scored."""
