"""Measures what waiting messages cost: `make bench`, or `python bench/growth [--full]`.

The cost of each operation with more and more messages waiting, memory a message, the time until a
store is open again, and the disk that a long run needs. One process holds each number of waiting
messages; they are measured in turn, round by round, and a figure is the median of the rounds. Only
ratios of one run mean anything.
"""
