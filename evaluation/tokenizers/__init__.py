"""Tokenizers: their files, text to token ids as training did it, and token ids back to text.

All text becomes token ids, and all token ids become text, in this package alone.
"""
