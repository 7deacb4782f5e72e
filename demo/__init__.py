"""The demonstration: a real model, real questions and real text from packages on PyPI."""
