"""Converts the arguments of tasks to JSON and back, by the annotations of their parameters."""
