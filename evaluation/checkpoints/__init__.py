"""Find, check, load and write checkpoints of Nanotron and Hugging Face."""
