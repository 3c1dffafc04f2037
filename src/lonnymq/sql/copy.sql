-- copy.sql: stages a bulk load; message_publish creates its messages. The client fills in the schema.
copy {schema}.stage (publication, part, ordinal, channel, contents, dequeue_ats, delays_ms, keys, max_attempts, headers)
from stdin (format binary)
