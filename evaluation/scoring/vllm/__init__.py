"""Generate answers with vLLM, which is installed in a separate environment."""
