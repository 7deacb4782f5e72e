"""There, and never called: the stand-in computes on CPU."""
