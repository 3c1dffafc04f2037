"""How messages enter and leave: aio.py is written by hand, sync.py is generated from it."""
