"""The limits of one PostgreSQL: the cost of a message, a connection, a channel and a day of history."""
