"""Measures queues as sources and sinks of Spark: `make bench`, or `python bench/spark`.

One Spark session on this machine reads and writes messages of 1 KiB, of a `merq serve` of each of
our builds, and the same rows as Parquet files. Each round does everything once; a ratio is the
median of the rounds' own ratios. Only ratios of one run mean anything.
"""
