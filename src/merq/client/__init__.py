"""What applications import: the queue manager in-process, its queues, messages, transactions."""
