"""Measures messages from one queue manager to another: `make bench`, or `python bench/exchange`.

Each of our builds runs as four `merq serve` processes with an address and the standard port each.
An application sends to one of them with its own client; a message counts when it is in the queue of
another. RabbitMQ does the same with two nodes and a shovel between them. Each round measures every
contender once, by a process of its own. A ratio is the median of the rounds' own ratios, a rate the
median of the rates. Only ratios of one run mean anything.
"""
