"""All findings of the doctor, from the facts that it has read."""

from collections.abc import Iterator
from datetime import datetime

from lonnymq.diagnostics import Examination
from lonnymq.doctor import lease_findings, queue_findings, server_findings, worker_findings
from lonnymq.doctor.finding import Finding, QueueFacts
from lonnymq.schema import SchemaState

USABLE = (SchemaState.CURRENT, SchemaState.NEWER, SchemaState.OUTDATED)


def findings(facts: Examination, queue: QueueFacts, now: datetime) -> Iterator[Finding]:
    """Yield the findings in the order in which to fix them."""
    yield from server_findings.server(facts.server, now)
    yield from server_findings.schema(facts)
    yield from server_findings.privileges(facts)
    yield from server_findings.owner(facts)
    yield from server_findings.settings(facts.server)
    yield from server_findings.connections(facts.server)
    yield from queue_findings.transactions(facts)
    yield from queue_findings.tables(facts)
    if queue.pulse is not None:
        yield from worker_findings.workers(queue.pulse, facts, queue.workers or (), now)
        yield from queue_findings.backlog(queue.pulse)
        yield from queue_findings.history(queue.pulse, queue.partitions)
    yield from lease_findings.long_leases(facts)
    yield from queue_findings.channels(facts)
    if queue.problems is not None:
        yield from queue_findings.invariants(queue.problems)
    yield from server_findings.unchecked(facts)
