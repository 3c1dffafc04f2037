"""Connections: the client's own pool, borrowed connections, detecting failures, and reconnecting.

aio/ is written by hand, sync/ is generated from it.
"""
