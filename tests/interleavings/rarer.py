"""Calls that are made less often. Each is examined together with every other call, in fewer states."""

import json

from tests.interleavings.operations import (
    PART,
    Call,
    Need,
    Operation,
    Program,
    call,
    end_sql,
)
from tests.interleavings.states import Facts

STREAM = f"select outcome, created from stream_publish('s', 1, array['{PART}'::uuid], '{{{{2}}}}')"
# The tenant learns only the message's uuid; the account needs its id, which the owner of the queue can read.
AS_TENANT = """
    set local role {tenant};
    select set_config('interleavings.outcome', outcome, true) as claim,
      set_config('interleavings.uuid', coalesce(message_uuid::text, ''), true) as claim
    from {call};
    set local role none;
    select current_setting('interleavings.outcome') as outcome,
      message_of_uuid(nullif(current_setting('interleavings.uuid'), '')::uuid) as message_id
"""


def as_tenant(verb: str, function: str, *needs: Need) -> Operation:
    """A tenant's call. `function` may refer to the uuids of the messages that wait and of dead letters."""

    def start(facts: Facts, session: int) -> Program:
        uuids = {name: facts.uuids[ids[0]] for name in ("waiting", "dead") if (ids := getattr(facts, name))}
        yield Call(verb, AS_TENANT.format(tenant=facts.tenant, call=function.format(**uuids)))

    return Operation(function.partition("(")[0], start, frozenset({Need.TENANT, *needs}))


def _claim_heartbeat(facts: Facts, session: int) -> Program:
    sql = f"select held, lost from claim_heartbeat('{facts.claim}', 60000)"
    yield Call("claim_heartbeat", sql, leases=tuple(facts.leases))


def _cancel_key(facts: Facts, session: int) -> Program:
    yield Call("cancel", "select outcome, message_id from message_cancel_key('a', 'k')", keyed=facts.keyed)


def _complete_with_result(facts: Facts, session: int) -> Program:
    message, token = facts.leases[0]
    sql = end_sql("complete", message, token).replace("])", "], array['r'::bytea])")
    yield Call("complete", sql, result="r")


def default_cap(cap: int | None, name: str, *needs: Need) -> Operation:
    policy = json.dumps({"default_policy": {"max_concurrency": cap}})

    def start(facts: Facts, session: int) -> Program:
        yield Call("queue_set", f"select queue_set('{policy}') is not null as done")

    return Operation(name, start, frozenset(needs))


RARER = {
    one.name: one
    for one in (
        call("stream_publish", STREAM, Need.STREAM),
        Operation("claim_heartbeat", _claim_heartbeat, frozenset({Need.CLAIM})),
        Operation("cancel_key", _cancel_key, frozenset({Need.KEY})),
        Operation("complete_result", _complete_with_result, frozenset({Need.LEASE, Need.RESULT})),
        call(
            "cancel",
            "select outcome, message_id from message_cancel(array[{leases[0][0]}])",
            Need.LEASE,
            Need.RESULT,
            name="cancel_result",
        ),
        call("result_prune", "select result_prune()", Need.RESULT),
        call("history_prepare", "select history_prepare(0) as partitions", Need.HISTORY),
        call("history_if_due", "select created as partitions from history_prepare_if_due()", Need.HISTORY),
        call("purge", "select outcome, message_id from dead_purge(array[{dead[0]}])", Need.DEAD),
        default_cap(1, "default"),
        call("repair", "select problem, channel, detail from queue_check(true)"),
        as_tenant("create", "tenant_create('a', 'x')"),
        as_tenant("cancel", "tenant_cancel('{{{waiting}}}')", Need.WAITING),
        as_tenant("redrive", "tenant_redrive('{{{dead}}}')", Need.DEAD),
    )
}
