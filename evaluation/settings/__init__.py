"""Typed configuration and task suites: the one source of the schema and of every path."""
