"""The programs that run inside each peer's environment, and what they share."""
