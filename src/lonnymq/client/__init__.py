"""The client: aio/ is written by hand, sync/ is generated from it."""
