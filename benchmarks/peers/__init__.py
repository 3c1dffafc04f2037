"""Compares LonnyMQ with other queues, on the same machine and in the same run."""
