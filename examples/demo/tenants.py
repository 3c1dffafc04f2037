"""The tenants of the demo, their messages and their policies."""

from collections.abc import Iterator

from examples.demo.app import call_partner, invoice, sync_crm, transcode
from lonnymq import NewMessage, Queue

PROCESSES = 4
# The most that one process leases in one call: for ten slots, and ten ahead.
BATCH = 20

NOISY = 10_000
SMALL_TENANTS = 10
SMALL = 10
CAPPED, MAX_CONCURRENCY = 100, 2
THROTTLED, RELEASE_INTERVAL_MS = 40, 50
FAILING, MAX_ATTEMPTS = 20, 2
TOTAL = NOISY + SMALL_TENANTS * SMALL + CAPPED + THROTTLED + FAILING

# In each round every channel has its turn, and each process may at that moment hold one full batch.
FAIR = SMALL * PROCESSES * BATCH


def prepare(queue: Queue) -> None:
    """Install the queue, and set the tenants' policies."""
    queue.install()
    queue.set(history="metadata")
    queue.channel("capped").set(max_concurrency=MAX_CONCURRENCY)
    queue.channel("throttled").set(release_interval_ms=RELEASE_INTERVAL_MS)


def fill(queue: Queue) -> None:
    """Enqueue all messages, those of the noisy tenant first."""
    queue.copy_in(transcode.message("noisy", video=n) for n in range(NOISY))
    queue.enqueue_many(other_messages())


def other_messages() -> Iterator[NewMessage]:
    for tenant in range(SMALL_TENANTS):
        yield from (transcode.message(f"small-{tenant}", video=n) for n in range(SMALL))
    yield from (invoice.message("capped", number=n) for n in range(CAPPED))
    yield from (call_partner.message("throttled", number=n) for n in range(THROTTLED))
    yield from (sync_crm.message("failing", customer=n) for n in range(FAILING))
