"""Measures what local applications feel while strangers flood the port of queue managers."""
