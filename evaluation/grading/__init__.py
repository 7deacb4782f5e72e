"""What was scored, made into credit and summaries; CPU only, no model."""
