"""LonnyMQ: a multi-tenant message queue that lives in the PostgreSQL you already run."""

__version__ = "0.1.0"
