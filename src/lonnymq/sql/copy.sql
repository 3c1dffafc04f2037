-- copy.sql: how rows of a bulk load are staged; message_publish makes messages of them. The client names the schema.
copy {schema}.stage (publication, part, ordinal, channel, content, dequeue_at, delay_ms, key, max_attempts)
from stdin (format binary)
