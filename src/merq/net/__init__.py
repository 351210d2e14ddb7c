"""Sockets between queue managers: thin drivers for what `merq.exchange` decides."""
