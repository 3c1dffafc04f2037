"""Benchmarks of the queue; `make help` lists the commands."""
