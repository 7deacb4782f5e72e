"""Nanotron's model classes, one file each: the keys of its configuration, and what computes the same."""
