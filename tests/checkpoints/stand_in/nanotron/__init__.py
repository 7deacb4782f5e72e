"""In place of Nanotron: the names that are imported, with its signatures, on CPU."""
