"""Judges a queue by facts that others have read; `findings.py` lists all findings."""
