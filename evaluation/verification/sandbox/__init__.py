"""Where code that a model wrote is run: without network, files, processes or the verdict."""
