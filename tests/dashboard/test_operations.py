"""Crons, workers, the system and the record of actions, as pages show and change them."""

import re
import threading
import time
import uuid

from psycopg.conninfo import make_conninfo

from lonnymq import Message, Queue, Worker
from tests.cli.test_workers import report
from tests.conftest import Connect
from tests.dashboard.conftest import OpenClient, text_of
from tests.dashboard.test_messages import bury, form_of, send


def test_a_cron_is_paused_and_resumed(client: OpenClient, queue: Queue) -> None:
    browser = client()
    assert "There is no cron" in text_of(browser.get("/crons").text)
    for name in ("nightly report", "other"):
        queue.cron.set(name, "0 3 * * *", channel="acme", payload=1, timezone="Europe/Berlin")
    page = browser.get("/crons").text
    assert "at 03:00" in text_of(page).lower()
    answer = send(browser, form_of(page, "Pause nightly report"), action="pause")
    assert answer.headers["location"] == "/crons"
    assert {one.name: one.is_paused for one in queue.cron.list()} == {"nightly report": True, "other": False}
    page = browser.get("/crons").text
    assert "The cron is paused" in text_of(page)
    send(browser, form_of(page, "Resume nightly report"), action="resume")
    assert not any(one.is_paused for one in queue.cron.list())
    queue.cron.delete("nightly report")
    answer = send(browser, form_of(page, "Resume nightly report"), action="resume")
    assert "no longer there" in text_of(browser.get("/crons").text)
    records = queue.audit.page().items
    assert [(one.verb, one.subject, dict(one.outcomes)) for one in records] == [
        ("cron_resume", "nightly report", {"unknown": 1}),
        ("cron_resume", "nightly report", {"set": 1}),
        ("cron_pause", "nightly report", {"set": 1}),
    ]


def test_a_worker_is_shown_with_what_it_holds_and_drained(client: OpenClient, queue: Queue, dsn: str) -> None:
    browser = client()
    assert "No worker has reported itself" in text_of(browser.get("/workers").text)
    may_end = threading.Event()

    def handle(message: Message) -> None:
        may_end.wait(60)

    held = queue.enqueue("acme", 1).id
    with Queue(dsn) as own:
        worker = Worker(own, handle)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            deadline = time.monotonic() + 60
            while "working" not in (page := browser.get("/workers").text) or f">{held}</a>" not in page:
                assert time.monotonic() < deadline, text_of(page)
                time.sleep(0.2)
            assert "1 / " in text_of(page)
            answer = send(browser, form_of(page, 'name="worker"'), action="drain")
            assert "takes no more messages" in text_of(browser.get(answer.headers["location"]).text)
            assert "draining" in text_of(browser.get("/workers").text)
        finally:
            may_end.set()
            thread.join(60)
        assert not thread.is_alive()
    (record,) = queue.audit.page().items
    assert (record.verb, dict(record.outcomes)) == ("worker_drain", {"draining": 1})
    # It has left.
    answer = send(browser, form_of(page, 'name="worker"'), action="drain")
    assert "Nothing was changed" in text_of(browser.get("/workers").text)


def test_all_workers_are_drained_only_if_that_is_typed(
    client: OpenClient, queue: Queue, connect: Connect
) -> None:
    browser = client()
    assert "Drain all" not in browser.get("/workers").text
    for process in ("web:1", "web:2"):
        report(queue, process)
    form = form_of(browser.get("/workers").text, "Drain all workers")
    for typed in ("", "2", "Drain"):
        assert send(browser, form, typed=typed).status_code == 400
    assert {one.state for one in queue.workers()} == {"working"}
    holder = connect()
    holder.execute("begin; select from worker_process where name like 'web:1:%' for update")
    send(browser, form, typed="drain all")
    assert "Draining: 1. Locked by another transaction: 1; try again." in text_of(
        browser.get("/workers").text
    )
    holder.execute("rollback")
    answer = send(browser, form, typed="drain all")
    shown = text_of(browser.get(answer.headers["location"]).text)
    assert "All workers take no more messages, finish those they have, and end: 2." in shown
    assert "Drain all" not in shown
    assert {one.state for one in queue.workers()} == {"draining"}
    (last, before) = queue.audit.page().items
    assert (last.actor, last.verb, last.subject) == ("olga", "worker_drain", None)
    assert (before.outcomes, last.outcomes) == ({"draining": 1, "busy": 1}, {"draining": 2})


def test_the_system_page_says_what_is_wrong_and_counts_exactly(
    client: OpenClient, queue: Queue, connect: Connect
) -> None:
    for n in range(3):
        queue.enqueue(f"c{n}", 1)
    connect().execute(
        "insert into history_reader (name, xid, id, done_xid, done_id) values ('<lake>', 0, 0, 0, 0)"
    )
    holder = connect()
    holder.execute("set application_name = '<holder>'")
    holder.execute("begin")
    holder.execute("select pg_current_xact_id()")
    browser = client()
    page = browser.get("/system").text
    shown = text_of(page)
    assert "Findings of the doctor" in shown
    assert "message" in re.findall(r"<code>(\w+)</code></th>", page)
    assert "&lt;lake&gt;" in page
    assert "<holder>" in shown
    assert "Time behind" in shown
    holder.execute("rollback")
    deadline = time.monotonic() + 30
    while "Counted" not in (shown := text_of(browser.get("/system").text)):
        assert time.monotonic() < deadline
    assert "Channels 3 Waiting 3 Running 0 Dead letters 0" in shown
    # New messages are not counted at once, and the page says how old the counts are.
    queue.enqueue("c0", 2)
    assert "Waiting 3" in text_of(browser.get("/system").text)


def test_the_record_is_filtered_and_paged(client: OpenClient, queue: Queue) -> None:
    browser = client()
    assert "No action is recorded." in text_of(browser.get("/audit").text)
    for n in range(60):
        with queue.audit.action("alice" if n % 2 else "bob", "channel_set", f"c{n}", {"weight": n}) as action:
            action.outcomes.append("set")
    page = browser.get("/audit").text
    assert len(re.findall('id="by-', page)) == 50
    assert "weight 59" in text_of(page)
    (next_page,) = re.findall(r'rel="next" href="([^"]+)"', page)
    assert len(re.findall('id="by-', browser.get(next_page).text)) == 10
    assert len(re.findall('id="by-', browser.get("/audit?actor=alice").text)) == 30
    assert len(re.findall('id="by-', browser.get("/audit?subject=c7&actor=alice").text)) == 1
    assert "No action is recorded that matches" in text_of(browser.get("/audit?actor=eve").text)


def test_every_page_and_action_works_with_the_least_rights(
    client: OpenClient, queue: Queue, dsn: str, connect: Connect
) -> None:
    """Reading runs as a reader, acting as an operator; neither owns the queue."""
    queue.set(history="metadata")
    queue.history.prepare(days=1)
    scheduled = queue.enqueue("acme", 1, delay=3600).id
    (dead,) = bury(queue, "acme", 1, "no disk")
    queue.cron.set("nightly", "0 3 * * *", channel="acme", payload=1)
    owner, suffix = connect(), uuid.uuid4().hex[:8]
    roles = {kind: f"lonnymq_{kind}_{suffix}" for kind in ("reader", "operator")}
    try:
        for kind, role in roles.items():
            owner.execute(f"create role {role}".encode())
            owner.execute("select queue_grant(%s, %s)", [role, kind])
        targets = {kind: make_conninfo(dsn, options=f"-c role={role}") for kind, role in roles.items()}
        browser = client(queue_dsn=targets["operator"], reader_dsn=targets["reader"])
        for path in (
            *("/", "/channels", "/channels/acme", "/messages", "/messages?status=leased", "/failures"),
            *("/failures?error=no+disk", f"/messages/{scheduled}", f"/messages/{dead}", "/messages/99"),
            *("/crons", "/workers", "/system", "/audit"),
        ):
            answer = browser.get(path)
            assert answer.status_code == (404 if path == "/messages/99" else 200), path
        page = browser.get(f"/messages/{scheduled}").text
        assert send(browser, form_of(page, "Run now"), action="run_now").status_code == 303
        page = browser.get("/failures").text
        assert send(browser, form_of(page, "Redrive 1"), typed="1").status_code == 303
        page = browser.get("/crons").text
        assert send(browser, form_of(page, "Pause nightly"), action="pause").status_code == 303
        assert [(one.verb, one.role) for one in queue.audit.page().items] == [
            (verb, roles["operator"]) for verb in ("cron_pause", "dead_redrive", "message_run_now")
        ]
        assert len(queue.dequeue(limit=5)) == 2
    finally:
        for role in roles.values():
            owner.execute(f"drop owned by {role}".encode())
            owner.execute(f"drop role {role}".encode())
