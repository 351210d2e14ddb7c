"""What decides: the queue manager's rules, pure. Time and chance come in, effects go out.

So far: `positions`, the order of the messages in a queue.
"""
