"""Programs that run in a provider's environment: they render documents and score completions.

Of the rest of this package, only what needs the standard library alone may be imported here.
"""
