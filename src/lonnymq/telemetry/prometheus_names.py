"""The names of all Prometheus metrics, with their labels and what they mean.

Names that begin with lonnymq_worker_ are those of a worker's process, all others those of a queue.
"""

from dataclasses import dataclass

GAUGE, COUNTER, HISTOGRAM = "gauge", "counter", "histogram"


@dataclass(frozen=True)
class MetricName:
    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


UP = MetricName(
    "lonnymq_up", GAUGE, "1 if the queue could be looked at; if 0, nothing else about it is shown."
)
INFO = MetricName(
    "lonnymq_info",
    GAUGE,
    "Always 1; the version of the exporter, and of the schema.",
    ("version", "schema_version"),
)
LOOK_SECONDS = MetricName("lonnymq_look_seconds", GAUGE, "How long it took to look at the queue.")
LOOK_AGE_SECONDS = MetricName(
    "lonnymq_look_age_seconds", GAUGE, "How long ago that was: scrapes at about the same time share a look."
)

MESSAGES = MetricName(
    "lonnymq_queue_messages",
    GAUGE,
    "Messages that wait, are scheduled for later, are leased, or are dead letters. Estimates if"
    " lonnymq_queue_counts_exact is 0.",
    ("state",),
)
WAITING, SCHEDULED, LEASED, DEAD = "waiting", "scheduled", "leased", "dead"
CHANNELS = MetricName(
    "lonnymq_queue_channels", GAUGE, "Channels. An estimate if lonnymq_queue_counts_exact is 0."
)
COUNTS_EXACT = MetricName(
    "lonnymq_queue_counts_exact",
    GAUGE,
    "1 if the counts of rows are exact; 0 if tables are large, and PostgreSQL estimates them.",
)
TURN_LAG_SECONDS = MetricName(
    "lonnymq_queue_turn_lag_seconds",
    GAUGE,
    "How long the channel that waits longest for a worker has been due; 0 if none is.",
)
DUE_CHANNELS = MetricName(
    "lonnymq_queue_due_channels", GAUGE, "Channels that have a message to release now, of those looked at."
)
DEMAND = MetricName(
    "lonnymq_queue_demand",
    GAUGE,
    "Messages that workers could get now, within caps and rate limits, in the channels looked at.",
)
DUE_COMPLETE = MetricName(
    "lonnymq_queue_due_complete",
    GAUGE,
    "1 if all channels that are due were looked at; 0 if there are more, and so more demand.",
)
EXPIRED_LEASES = MetricName(
    "lonnymq_queue_expired_leases",
    GAUGE,
    "Leases whose time is over, and which no dequeue has ended yet; at most 1000 are counted.",
)
SLEEPERS = MetricName(
    "lonnymq_queue_sleepers",
    GAUGE,
    "Workers that may be asleep until they are notified; at most 1000 are counted.",
)
WORKERS = MetricName(
    "lonnymq_queue_workers",
    GAUGE,
    "Processes of workers, by their own reports, every five seconds; gone ones are shown for an hour.",
    ("state",),
)
SLOTS = MetricName(
    "lonnymq_queue_slots", GAUGE, "Slots of the workers that are not gone, by their own reports.", ("state",)
)
BUSY, FREE = "busy", "free"
UNFOLDED_WAKES = MetricName("lonnymq_queue_unfolded_wakes", GAUGE, "Wakes that no dequeue has processed yet.")
STATISTICS = "Counted by PostgreSQL, also if rolled back; starts again when the server crashes or fails over."
CREATED_TOTAL = MetricName(
    "lonnymq_queue_created_total", COUNTER, f"Messages created, also by redrives. {STATISTICS}"
)
LEASED_TOTAL = MetricName(
    "lonnymq_queue_leased_total", COUNTER, f"Leases taken: attempts begun. {STATISTICS}"
)
ENDED_TOTAL = MetricName(
    "lonnymq_queue_ended_total", COUNTER, f"Leases ended, by acknowledgement or expiry. {STATISTICS}"
)

CRON_OVERDUE_SECONDS = MetricName(
    "lonnymq_cron_overdue_seconds",
    GAUGE,
    "For how long a cron has been due without having ticked, for 1000 crons that are not paused.",
    ("cron",),
)
HISTORY_OVERFLOW_ROWS = MetricName(
    "lonnymq_history_overflow_rows", GAUGE, "Finished attempts of days that have no partition of history."
)
READER_LAG_SECONDS = MetricName(
    "lonnymq_history_reader_lag_seconds",
    GAUGE,
    "How long ago the oldest attempt ended that a reader of history is not done with, for 100 readers.",
    ("reader",),
)
TABLE_BYTES = MetricName(
    "lonnymq_table_bytes", GAUGE, "Size of a table with its indexes and partitions on disk.", ("table",)
)
TABLE_DEAD_ROWS = MetricName(
    "lonnymq_table_dead_rows",
    GAUGE,
    "Dead rows that vacuum has not removed, as PostgreSQL counts them.",
    ("table",),
)
OLDEST_TRANSACTION_SECONDS = MetricName(
    "lonnymq_oldest_transaction_seconds",
    GAUGE,
    "Age of the oldest open transaction in this database, among the sessions that the owner may see.",
)

SHOWN = "Of the channels that were named, and of the top ones, which a sample of a large queue may miss."
CHANNEL_WAITING = MetricName(
    "lonnymq_channel_waiting_messages",
    GAUGE,
    f"Messages of a channel that wait or are scheduled. {SHOWN}",
    ("channel",),
)
CHANNEL_LEASED = MetricName(
    "lonnymq_channel_leased_messages", GAUGE, f"Messages of a channel that are leased. {SHOWN}", ("channel",)
)
CHANNEL_LAG_SECONDS = MetricName(
    "lonnymq_channel_lag_seconds",
    GAUGE,
    f"How long a channel has waited for a worker; 0 if it does not. {SHOWN}",
    ("channel",),
)
CHANNEL_RELEASED_TOTAL = MetricName(
    "lonnymq_channel_released_total",
    COUNTER,
    f"Messages of a channel that were leased. {SHOWN}",
    ("channel",),
)
CHANNEL_WAITED_SECONDS_TOTAL = MetricName(
    "lonnymq_channel_waited_seconds_total",
    COUNTER,
    f"How long those messages had waited since they were due, added up. {SHOWN}",
    ("channel",),
)

CHANNEL_METRICS = (
    *(
        CHANNEL_WAITING,
        CHANNEL_LEASED,
        CHANNEL_LAG_SECONDS,
        CHANNEL_RELEASED_TOTAL,
        CHANNEL_WAITED_SECONDS_TOTAL,
    ),
)
QUEUE_METRICS = (
    *(UP, INFO, LOOK_SECONDS, LOOK_AGE_SECONDS),
    *(MESSAGES, CHANNELS, COUNTS_EXACT, TURN_LAG_SECONDS, DUE_CHANNELS, DEMAND, DUE_COMPLETE, EXPIRED_LEASES),
    *(WORKERS, SLOTS, SLEEPERS, UNFOLDED_WAKES, CREATED_TOTAL, LEASED_TOTAL, ENDED_TOTAL),
    *(CRON_OVERDUE_SECONDS, HISTORY_OVERFLOW_ROWS, READER_LAG_SECONDS, TABLE_BYTES, TABLE_DEAD_ROWS),
    *(OLDEST_TRANSACTION_SECONDS, *CHANNEL_METRICS),
)

WORKER_ATTEMPTS_TOTAL = MetricName(
    "lonnymq_worker_attempts_total",
    COUNTER,
    "Attempts that this worker has ended, by task and by outcome, of which lease_lost is one.",
    ("task", "outcome"),
)
WORKER_PROCESS_SECONDS = MetricName(
    "lonnymq_worker_process_seconds", HISTOGRAM, "How long handlers took, by task.", ("task",)
)
WORKER_WAIT_SECONDS = MetricName(
    "lonnymq_worker_wait_seconds", HISTOGRAM, "How long messages were due before a handler started."
)
WORKER_SLOTS = MetricName(
    "lonnymq_worker_slots", GAUGE, "Slots that are busy with a handler, and that are free.", ("state",)
)
WORKER_PROCESSES = MetricName("lonnymq_worker_processes", GAUGE, "Processes of this worker that answer.")
WORKER_LAST_FETCH = MetricName(
    "lonnymq_worker_last_fetch_timestamp_seconds",
    GAUGE,
    "When the queue last answered a dequeue, for the process that is most behind; at first, when it started.",
)
WORKER_INFO = MetricName("lonnymq_worker_info", GAUGE, "Always 1; the version of the worker.", ("version",))

WORKER_METRICS = (
    *(WORKER_ATTEMPTS_TOTAL, WORKER_PROCESS_SECONDS, WORKER_WAIT_SECONDS, WORKER_SLOTS),
    *(WORKER_PROCESSES, WORKER_LAST_FETCH, WORKER_INFO),
)
