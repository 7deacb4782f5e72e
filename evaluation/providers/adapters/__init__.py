"""Programs that run in a provider's environment: they render documents and score completions.

Nothing here imports the rest of this package, whose requirements the provider's environment lacks.
"""
