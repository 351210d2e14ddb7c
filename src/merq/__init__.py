"""Merq: a message queuing system that speaks MSMQ's protocols on any operating system."""

__version__ = "0.1.0"
