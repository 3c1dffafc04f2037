"""A million tenants under the queue's scheduling rules and under FIFO: seeded, in pure Python."""
