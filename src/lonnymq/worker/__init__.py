"""The worker: it leases messages, has handlers work them, and says how each attempt ended."""
