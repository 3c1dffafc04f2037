"""doctor: findings from facts about server and queue; `command.py` lists them all."""
