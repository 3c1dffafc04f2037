"""The names of OpenTelemetry's conventions for messaging, which are still in development, and of our own.

https://opentelemetry.io/docs/specs/semconv/messaging/
"""

SYSTEM = "messaging.system"
LONNYMQ = "lonnymq"
OPERATION_NAME = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
DESTINATION_NAME = "messaging.destination.name"
MESSAGE_ID = "messaging.message.id"
BATCH_MESSAGE_COUNT = "messaging.batch.message_count"
ERROR_TYPE = "error.type"

# Values of OPERATION_TYPE.
SEND, RECEIVE, PROCESS, SETTLE = "send", "receive", "process", "settle"
# Values of OPERATION_NAME; the names of acknowledgements are those of their actions.
ENQUEUE, DEQUEUE = "enqueue", "dequeue"

# Ours: what became of a message that was enqueued, how often it was attempted, and what processed it.
OUTCOME = "lonnymq.outcome"
ATTEMPT = "lonnymq.attempt"
HANDLER = "lonnymq.handler"

# Metrics: name, unit, description.
SENT_MESSAGES = (
    "messaging.client.sent.messages",
    "{message}",
    "Number of messages that a producer attempted to enqueue.",
)
CONSUMED_MESSAGES = (
    "messaging.client.consumed.messages",
    "{message}",
    "Number of messages that were leased.",
)
OPERATION_DURATION = (
    "messaging.client.operation.duration",
    "s",
    "Duration of calls that enqueue, dequeue or acknowledge.",
)
PROCESS_DURATION = ("messaging.process.duration", "s", "Duration of attempts.")
DURATION_BOUNDARIES = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
