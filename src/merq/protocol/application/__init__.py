"""The protocol between applications and the queue manager: ours, for the documents have none.

`requests` and `reports` are what is asked and told, `codec` their bytes, `server` and `client` the
two ends of a conversation. docs/reference/application-protocol.md specifies it.
"""
