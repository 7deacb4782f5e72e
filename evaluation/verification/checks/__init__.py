"""Checks of answers to probes: functions of an answer's text."""
