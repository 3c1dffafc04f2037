"""Calls that are made less often. Each is examined together with every other call, in fewer states."""

import json
import re

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
    select set_config('interleavings.reply', json_agg(r)::text, true) as claim from {call} r;
    set local role none;
    select r ->> 'outcome' as outcome, message_of_uuid((r ->> 'message_uuid')::uuid) as message_id
    from json_array_elements(current_setting('interleavings.reply')::json) r
"""


def as_tenant(verb: str, function: str, *needs: Need) -> Operation:
    """A tenant's call. `function` may refer to the uuids of the messages that wait and of dead letters."""
    name = re.findall(r"\btenant_\w+", function)[0]

    def start(facts: Facts, session: int) -> Program:
        uuids = {name: facts.uuids[ids[0]] for name in ("waiting", "dead") if (ids := getattr(facts, name))}
        sql = AS_TENANT.format(tenant=facts.tenant, call=function.format(**uuids))
        yield Call(verb, sql, keyed=facts.keyed if Need.KEY in needs else 0)

    return Operation(name, start, frozenset({Need.TENANT, *needs}))


def of_the_only(function: str, outcome: str, names: str) -> str:
    """A call that only says how many; there is one dead letter, which `names` names in the reply."""
    return f"select case {function} when 1 then '{outcome}' else 'none' end as outcome, {names}"


def _claim_heartbeat(facts: Facts, session: int) -> Program:
    sql = f"select held, lost from claim_heartbeat('{facts.claim}', 60000)"
    yield Call("claim_heartbeat", sql, leases=tuple(facts.leases))


def _claim_messages(facts: Facts, session: int) -> Program:
    yield Call("claim_messages", f"select count(*) as held from claim_messages('{facts.claim}', 60000)")


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
        # Without the time until the next look, which is random.
        call("watch", "select leases as ended from worker_watch()", Need.LEASE, Need.GONE),
        call("repair", "select problem, channel, detail from queue_check(true)"),
        as_tenant("create", "tenant_create('a', 'x')"),
        as_tenant("cancel", "tenant_cancel('{{{waiting}}}')", Need.WAITING),
        as_tenant("redrive", "tenant_redrive('{{{dead}}}')", Need.DEAD),
    )
}
PURGE_CHANNEL = of_the_only("dead_purge_channel('a')", "purged", "{dead[0]} as message_id")
REDRIVE_CHANNEL = of_the_only("dead_redrive_channel('a')", "redriven", "{dead[0]} as message_id")
TENANT_REDRIVE_CHANNEL = of_the_only(
    "tenant_redrive_channel('a')", "redriven", "'{dead}'::uuid as message_uuid"
)
# These are examined together with the calls that use the same rows, because they differ little from others.
RELATED = {
    one.name: one
    for one in (
        call("redrive", REDRIVE_CHANNEL, Need.DEAD, name="redrive_channel"),
        call("purge", PURGE_CHANNEL, Need.DEAD, name="purge_channel"),
        Operation("claim_messages", _claim_messages, frozenset({Need.CLAIM})),
        call("cron_set", "select cron_set('c', '*/5 * * * *', 'a', 'y') as done", Need.CRON),
        call("cron_pause", "select cron_pause('c') as done", Need.CRON),
        call("cron_delete", "select cron_delete('c') as done", Need.CRON),
        call("queue_count", "select leased is not null as done from queue_count()"),
        as_tenant("create", "tenant_create_many('{{a, a}}', '{{x, y}}')"),
        as_tenant("cancel", "tenant_cancel_key('a', 'k')", Need.KEY),
        as_tenant("redrive", f"({TENANT_REDRIVE_CHANNEL})", Need.DEAD),
    )
}
