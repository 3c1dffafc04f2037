"""How messages enter and leave: aio/ is written by hand, sync/ is generated from it."""
