"""doctor: facts, what they mean, and what to do; `command.py` is the table of contents."""
