"""Spark's doors, the archive and the analysis, against Spark's own ways."""
