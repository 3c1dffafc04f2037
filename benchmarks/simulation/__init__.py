"""Simulates a million tenants under the queue's scheduling rules and under FIFO, from a seed."""
