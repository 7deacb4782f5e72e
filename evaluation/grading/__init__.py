"""Turn stored scores into credits and summaries; CPU only, no model."""
