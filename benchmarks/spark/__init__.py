"""Benchmarks of the Spark source, the archive and the analysis, compared with Spark's own connectors."""
