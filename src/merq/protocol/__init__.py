"""Conversations: what is said in which order, as plain objects that do no I/O."""
