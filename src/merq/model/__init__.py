"""Nouns: names, properties and classes of messages; no bytes, no I/O."""
