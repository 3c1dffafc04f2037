"""channel, history and cron: managing a running queue."""

import shlex

import pytest

from lonnymq import ChannelPolicy, NewMessage, Queue
from lonnymq.cli.exit_codes import CommandExit
from tests.cli.conftest import Run
from tests.conftest import Connect


def test_channel_set_changes_only_the_given_options(lonnymq: Run, queue: Queue) -> None:
    shown = lonnymq("channel", "set", "acme", "--max-concurrency", "3", "--release-interval-ms", "5000")
    assert shown.code == 0
    assert "1 per 5" in shown.out
    done = lonnymq("channel", "set", "acme", "--weight", "2", "--max-concurrency", "default", "--json").json
    assert (done["weight"], done["max_concurrency"], done["release_interval_ms"]) == (2, None, 5000)
    more = ("--max-size", "10", "--max-attempts", "4", "--release-burst", "5")
    assert lonnymq("channel", "set", "acme", *more).code == 0
    status = queue.channel("acme").status()
    assert status is not None
    assert status.policy == ChannelPolicy(
        release_interval_ms=5000, release_burst=5, weight=2, max_size=10, max_attempts=4
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--weight", "many"], "'many' is neither a whole number nor 'default'"),
        (["--weight", "none"], "'none' is neither a whole number nor 'default'"),
        (["--max-size", "all"], "'all' is neither a whole number nor 'none' or 'default'"),
        (["--weight", "0"], "weight must be a whole number between 1 and 1000"),
        (["--max-concurrency", "-1"], "max_concurrency must be"),
    ],
)
def test_an_invalid_policy_is_refused(lonnymq: Run, queue: Queue, arguments: list[str], error: str) -> None:
    result = lonnymq("channel", "set", "acme", *arguments)
    assert result.code == CommandExit.USAGE
    assert error in result.error_text
    assert queue.channels() == []


def test_a_channel_is_paused_explained_and_resumed(lonnymq: Run, queue: Queue) -> None:
    queue.enqueue("acme", 1, priority=1)
    assert lonnymq("channel", "pause", "acme").code == 0
    assert len(queue.dequeue()) == 0
    shown = lonnymq("channel", "explain", "acme").out
    assert "paused: the channel is paused; channel_resume() ends the pause" in shown
    assert ", priority 1" in shown
    assert lonnymq("channel", "resume", "acme").code == 0
    found = lonnymq("channel", "explain", "acme", "--json").json
    assert (found["reason"], found["waiting"]) == ("ready", 1)
    assert "unknown: no message has been created" in lonnymq("channel", "explain", "nobody").out


def test_the_default_policy_is_shown_changed_and_named_where_it_applies(lonnymq: Run, queue: Queue) -> None:
    done = lonnymq("channel", "default", "--max-concurrency", "5", "--max-attempts", "3", "--json").json
    assert (done["max_concurrency"], done["max_attempts"], done["weight"]) == (5, 3, 1)
    queue.enqueue("acme", 1)
    shown = lonnymq("channel", "set", "acme", "--max-attempts", "none").out
    assert "5 (the queue's default)" in shown
    assert "none (lifted)" in shown
    assert "5 (the queue's default)" in lonnymq("channel", "explain", "acme").out
    assert (
        lonnymq("channel", "default", "--max-concurrency", "none", "--json").json["max_concurrency"] is None
    )
    assert "3" in lonnymq("channel", "default").out


def test_an_empty_channel_is_deleted_after_confirmation(lonnymq: Run, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    assert lonnymq("channel", "delete", "acme", given="").code == CommandExit.NO
    refused = lonnymq("channel", "delete", "acme", "--yes")
    assert refused.code == CommandExit.NO
    assert "still has messages, so it was not deleted" in refused.error_text
    queue.dequeue()[0].complete()
    assert lonnymq("channel", "delete", "acme", given="yes\n").out == "channel 'acme' is deleted\n"
    assert "does not exist" in lonnymq("channel", "delete", "acme", "--yes").error_text


def test_locked_rows_exit_with_busy(lonnymq: Run, queue: Queue, connect: Connect) -> None:
    made = str(queue.enqueue("acme", 1).id)
    queue.channel("acme").set(weight=2)
    holder = connect()
    holder.execute("begin")
    holder.execute("select channel_set('acme', '{\"weight\": 3}')")
    holder.execute("select from message for update")
    assert lonnymq("channel", "pause", "acme").code == CommandExit.BUSY
    assert lonnymq("message", "cancel", made, "--yes").code == CommandExit.BUSY
    holder.execute("rollback")


def test_history_is_turned_on_prepared_and_pruned(lonnymq: Run, queue: Queue, connect: Connect) -> None:
    assert lonnymq("history", "set", "metadata").out == "history is metadata\n"
    assert queue.status().history == "metadata"
    assert lonnymq("history", "prepare", "--days", "20", "--json").json == {"made": 6}
    assert lonnymq("history", "prepare").out == "all partitions already exist\n"
    assert len(lonnymq("history", "list", "--json").json) == 21
    assert lonnymq("history", "list").out.count("open") == 21
    connection = connect()
    connection.execute("create table history_20200101 (like history including defaults)")
    connection.execute(
        "alter table history attach partition history_20200101"
        " for values from (1577836800000) to (1577923200000)"
    )
    assert lonnymq("history", "prune", "--older-than", "90d", given="n\n").code == CommandExit.NO
    asked = lonnymq("history", "prune", "--older-than", "90d", given="y\n")
    assert asked.out == "dropped history_20200101\n"
    assert asked.err == "Drop all history older than 90d? [y/N] "
    assert lonnymq("history", "prune", "--older-than", "90d", "--yes", "--json").json == {"pruned": []}
    assert lonnymq("history", "prune", "--yes").code == CommandExit.USAGE


def test_history_readers_are_listed_and_forgotten(lonnymq: Run, connect: Connect) -> None:
    assert lonnymq("history", "readers", "--json").json == {
        "readers": [],
        "lag_s": {},
        "blocker": None,
    }
    connection, slow = connect(), connect()
    connection.execute("select history_follow('archive', null, null, null, false, 1, null)")
    assert lonnymq("history", "readers", "--json").json["lag_s"] == {"archive": 0}
    slow.execute("begin")
    slow.execute("select pg_current_xact_id()")
    shown = lonnymq("history", "readers").out
    assert "archive" in shown
    assert f"pid {slow.info.backend_pid} " in shown
    slow.execute("rollback")
    assert lonnymq("history", "rebase", "--yes").out == "0 rows rebased\n"
    assert lonnymq("history", "forget", "archive", "--yes").out == "reader 'archive' is forgotten\n"
    assert lonnymq("history", "forget", "archive", "--yes").out == "there is no reader 'archive'\n"
    assert lonnymq("history", "forget", "archive", "--yes", "--json").json == {"forgotten": False}


def test_crons_are_listed_paused_resumed_and_deleted(lonnymq: Run, queue: Queue) -> None:
    queue.cron.set("nightly", "0 3 * * *", channel="acme", payload={"n": 1}, timezone="Europe/Berlin")
    shown = lonnymq("cron", "list").out
    assert "nightly" in shown
    assert "At 03:00" in shown
    assert lonnymq("cron", "pause", "nightly").code == 0
    assert lonnymq("cron", "pause", "nightly").code == 0
    assert lonnymq("cron", "list", "--json").json[0]["is_paused"] is True
    assert lonnymq("cron", "list").out.rstrip().endswith("paused")
    assert lonnymq("cron", "resume", "nightly").code == 0
    assert lonnymq("cron", "list", "--json").json[0]["is_paused"] is False
    assert lonnymq("cron", "delete", "nightly", given="n\n").code == CommandExit.NO
    assert lonnymq("cron", "delete", "nightly", "--yes").code == 0
    for command in ("pause", "resume", "delete"):
        result = lonnymq("cron", command, "nightly", *(["--yes"] if command == "delete" else []))
        assert result.code == CommandExit.NO
        assert "there is no cron 'nightly'" in result.error_text


def test_a_cron_is_set(lonnymq: Run, queue: Queue) -> None:
    command = ["cron", "set", "nightly", "0 3 * * *", "acme", '{"n": 1}', "--timezone", "Europe/Berlin"]
    assert lonnymq(*command).out == "cron 'nightly' is set: At 03:00 every day (Europe/Berlin)\n"
    assert lonnymq(*command).out == "cron 'nightly' was already set this way\n"
    assert lonnymq(*command, "--header", "region=eu", "--catch-up", "all").code == 0
    (found,) = queue.cron.list()
    assert (found.channel, found.timezone, found.catch_up) == ("acme", "Europe/Berlin", "all")
    assert lonnymq("cron", "set", "nightly", "every night", "acme", "1").code == CommandExit.USAGE
    assert [one.verb for one in queue.audit.page(subject="nightly").items] == ["cron_set"] * 3


def test_channel_names_are_completed_from_the_queue(shell: Run, queue: Queue) -> None:
    queue.enqueue_many([NewMessage(channel=name, payload=1) for name in ("acme", "acorn", "other")])
    completion = {
        "_LONNYMQ_COMPLETE": "complete_bash",
        "COMP_WORDS": "lonnymq channel pause ac",
        "COMP_CWORD": "3",
    }
    found = shell(**completion)
    assert found.out.split() == ["acme", "acorn"]
    assert shell(**completion, LONNYMQ_SCHEMA="nothing_here").out.split() == []


def test_audit_lists_what_operators_did(lonnymq: Run, queue: Queue) -> None:
    assert "no actions are recorded" in lonnymq("audit").out
    for name in ("acme", "globex\x1b[31m"):
        with queue.audit.action("alice", "channel_set", name, {"weight": 2}) as action:
            action.outcomes += ["set"]
    shown = lonnymq("audit", "--limit", "1").out
    assert "globex" in shown
    assert "\x1b" not in shown
    (last,) = lonnymq("audit", "--subject", "acme", "--json").json
    assert f"--before {last['id'] + 1}" in shown
    shown = lonnymq("audit", "--before", str(last["id"] + 1), "--actor", "alice").out
    assert all(part in shown for part in ("alice", "channel_set", "acme", "weight=2", "set=1"))
    assert lonnymq("audit", "--actor", "nobody", "--json").json == []


def test_commands_that_change_something_are_recorded(lonnymq: Run, queue: Queue) -> None:
    waiting = str(queue.enqueue("acme", 1, delay=3600).id)
    for n in range(3):
        queue.enqueue("acme", n)
        queue.dequeue()[0].bury(error=f"error {n % 2}")
    queue.cron.set("nightly", "0 3 * * *", channel="acme", payload=1)
    for command, code in {
        "channel set acme --weight 3": 0,
        "channel pause acme": 0,
        "channel resume acme": 0,
        "channel delete acme --yes": CommandExit.NO,
        "cron pause nightly": 0,
        "cron resume nightly": 0,
        "cron delete unknown --yes": CommandExit.NO,
        f"message run-now {waiting}": 0,
        f"message cancel {waiting} 7 --yes": CommandExit.NO,
        "dead redrive --channel acme --error 'error 0' --yes": 0,
        "dead purge --channel acme --yes": 0,
        "dead redrive --channel acme --yes": 0,
        "dead purge --channel acme --older-than 1d --yes": 0,
        "channel default": 0,
        "channel default --max-concurrency 5": 0,
        "history set metadata": 0,
        "history forget unknown --yes": 0,
        "history rebase --yes": 0,
        "history prune --older-than 1d --yes": 0,
        "repair --yes": 0,
        "grant pg_monitor reader": 0,
        "revoke pg_monitor": 0,
    }.items():
        assert lonnymq(*shlex.split(command)).code == code, command
    found = [(one["verb"], one["subject"], one["outcomes"]) for one in lonnymq("audit", "--json").json]
    assert found[::-1] == [
        ("channel_set", "acme", {}),
        ("channel_pause", "acme", {}),
        ("channel_resume", "acme", {}),
        ("channel_delete", "acme", {"not_empty": 1}),
        ("cron_pause", "nightly", {"set": 1}),
        ("cron_resume", "nightly", {"set": 1}),
        ("cron_delete", "unknown", {"unknown": 1}),
        ("message_run_now", waiting, {"due": 1}),
        ("message_cancel", None, {"cancelled": 1, "unknown": 1}),
        ("dead_redrive", None, {"redriven": 2}),
        ("dead_purge_channel", "acme", {"purged": 1}),
        ("dead_redrive_channel", "acme", {}),
        ("dead_purge_channel", "acme", {}),
        ("queue_set", None, {}),
        ("queue_set", None, {}),
        ("history_forget", "unknown", {"unknown": 1}),
        ("history_rebase", None, {"rebased": 1}),
        ("queue_check", None, {}),
        ("queue_grant", "pg_monitor", {}),
        ("queue_revoke", "pg_monitor", {}),
    ]
    (record, *_) = queue.audit.page(subject="acme", limit=1).items
    assert "@" in record.actor
    (_, granted) = queue.audit.page(subject="pg_monitor").items
    assert granted.arguments == {"kind": "reader"}


def test_actions_on_many_dead_letters_are_recorded_with_their_number_in_batches(
    lonnymq: Run, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lonnymq.cli.dead.BATCH", 2)
    for n in range(5):
        # Of two with the same key, one can be live.
        queue.enqueue("acme", n, key="same" if n > 2 else None)
        queue.dequeue()[0].bury(error="broken")
    assert "4 dead letters" in lonnymq("dead", "redrive", "--channel", "acme", "--yes").out
    assert lonnymq("dead", "purge", "--channel", "acme", "--yes", "--json").json == {"purged": 1}
    records = [(one.verb, one.subject, one.outcomes) for one in queue.audit.page().items]
    assert records[::-1] == [
        ("dead_redrive_channel", "acme", {"redriven": 2}),
        ("dead_redrive_channel", "acme", {"redriven": 2}),
        ("dead_purge_channel", "acme", {"purged": 1}),
    ]


def test_dropped_history_is_recorded(lonnymq: Run, queue: Queue, connect: Connect) -> None:
    connection = connect()
    for day in (1, 2):
        connection.execute(
            f"create table history_2020010{day} (like history including defaults);"
            f" alter table history attach partition history_2020010{day}"
            f" for values from ({1577836800000 + (day - 1) * 86400000}) to ({1577836800000 + day * 86400000})"
        )
    assert lonnymq("history", "prune", "--older-than", "90d", "--yes").code == 0
    (record,) = queue.audit.page().items
    assert (record.verb, record.outcomes) == ("history_prune", {"dropped": 2})
    assert record.arguments == {"partitions": ["history_20200101", "history_20200102"]}


def test_a_role_that_may_not_record_acts_without_a_record(
    lonnymq: Run, queue: Queue, connect: Connect, dsn: str
) -> None:
    waiting = str(queue.enqueue("acme", 1).id)
    owner = connect()
    owner.execute("create role lonnymq_cli_producer")
    try:
        owner.execute("select queue_grant('lonnymq_cli_producer', 'producer')")
        options = "-c role=lonnymq_cli_producer"
        assert lonnymq("message", "cancel", waiting, "--yes", PGOPTIONS=options).code == 0
        assert lonnymq("channel", "pause", "acme", PGOPTIONS=options).code == CommandExit.NOT_PERMITTED
    finally:
        owner.execute("drop owned by lonnymq_cli_producer")
        owner.execute("drop role lonnymq_cli_producer")
    assert queue.audit.page().items == []
    assert queue.messages().items == []
