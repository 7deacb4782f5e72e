"""In place of flash-attn: the few of its functions that Nanotron calls, written out, for any dtype."""

__version__ = "2.6.3"
