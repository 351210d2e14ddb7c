"""Measures our service beside other brokers: `make bench`, or `python bench/brokers`.

Each broker is fetched as Debian's packages, started on a spare loopback port in a folder of its own
on the same disk, and ended at the end. Each round measures every contender once, by a client in a
process of its own. A ratio is the median of the rounds' own ratios, a rate the median of the rates.
Only ratios of one run mean anything.

The peers are measured by the least that a client can do: frames made beforehand are written to the
socket and confirmations are counted, so that it is the broker that is measured. The fastest Python
client of each is measured beside that, because that is what a Python program would use. Ours is
measured by its own client alone.
"""
