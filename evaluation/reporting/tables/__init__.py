"""A stage's values in long form, and figures of them."""
