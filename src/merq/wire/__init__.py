"""Bytes to values and back: every structure of the binary formats, without state or I/O."""
