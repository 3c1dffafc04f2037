-- copy.sql: how a bulk load is staged; message_publish makes messages of it. The client names the schema.
copy {schema}.stage (publication, part, ordinal, channel, contents, dequeue_ats, delays_ms, keys, max_attempts)
from stdin (format binary)
