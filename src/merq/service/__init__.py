"""The queue manager as a process that serves applications: `merq serve`."""
