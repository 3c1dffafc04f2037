"""Measures what is claimed: `python -m benchmarks.core`."""
