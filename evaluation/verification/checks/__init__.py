"""What makes an answer to a probe right: pure functions of its text."""
