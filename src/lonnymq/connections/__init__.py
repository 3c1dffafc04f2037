"""Getting a connection, the client's own or a borrowed one; noticing that it failed; connecting again.

aio/ is written by hand, sync/ is generated from it.
"""
