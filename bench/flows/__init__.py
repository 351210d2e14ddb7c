"""Measures flows with many messages: `python bench/flows`.

`archive` puts a queue into a lake, `reconcile` says what became of the messages of three queue
managers, each at several sizes. A flow is a process of its own, as people start it; its memory,
Spark's and that of the queue managers is looked at every second. What the flow says is compared
with what was put in.
"""
