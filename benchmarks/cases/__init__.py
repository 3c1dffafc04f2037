"""The cases, in the order of the results' table; one file each."""

from benchmarks.cases import (
    bulk_create,
    costs,
    create_one_by_one,
    drain_many_channels,
    drain_one_channel,
    fairness,
    held_snapshot,
    history,
    idle_channels,
    idle_tenant,
    large_backlog,
    new_name_flood,
    open_transaction,
    single_message,
    wake_up,
    worker_drain,
    worker_memory,
)
from benchmarks.harness import Case

CASES: list[Case] = [
    drain_one_channel.CASE,
    drain_many_channels.CASE,
    idle_channels.CASE,
    single_message.CASE,
    create_one_by_one.CASE,
    bulk_create.CASE,
    *held_snapshot.CASES,
    large_backlog.CASE,
    open_transaction.CASE,
    fairness.CASE,
    idle_tenant.CASE,
    new_name_flood.CASE,
    history.CASE,
    wake_up.CASE,
    worker_memory.CASE,
    worker_drain.CASE,
    costs.CASE,
]
