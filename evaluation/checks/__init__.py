"""Checks of answers to probes (Tier4): functions of an answer's text, whose signatures are their settings."""
