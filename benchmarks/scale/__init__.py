"""Where one PostgreSQL ends: what a message, a connection, a channel and a day of history cost."""
