"""Whole runs beside one another: which checkpoints meet, and who is ahead from when on."""
