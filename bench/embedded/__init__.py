"""Measures embedded use beside other stores: `make bench`, or `python bench/embedded`.

Each round runs every contender once, in a process and a folder of its own on the same disk, with
the same messages. A ratio is the median of the rounds' own ratios, a rate the median of the rates.
Only ratios of one run mean anything.
"""
