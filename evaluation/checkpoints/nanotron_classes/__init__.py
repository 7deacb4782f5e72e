"""Nanotron's model classes, one file each: what marks a configuration, its keys, and what computes the same.

A file of this folder that defines `NANOTRON_CLASS` is found by itself (`registry.py`).
"""
