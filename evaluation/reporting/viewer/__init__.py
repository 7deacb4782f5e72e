"""Questions, prompts and completions of every checkpoint, in a browser, from a folder of results."""
