"""What runs in a provider's environment: it renders documents and scores completions, through files.

Nothing here imports the rest of this package, whose requirements the provider's environment lacks.
"""
