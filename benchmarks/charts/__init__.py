"""Generates the charts and tables of the documentation from the JSON in results/."""
