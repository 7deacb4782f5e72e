"""Programs of the providers' environments; they import only what needs the standard library alone."""
