"""Moving queues to other places: where messages go, and what was moved."""
