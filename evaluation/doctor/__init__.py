"""Everything a scoring job needs, looked at before a GPU is asked for."""
