"""Reads the text that a model wrote: thinking, code, lists, numbers, formulas and final answers.

Verifiers and checks compare what these modules read. Nothing here knows a gold answer.
"""
