"""Messages and dead letters: what pages show, and exactly what their actions change."""

import html
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from starlette.testclient import TestClient

from lonnymq import NewMessage, Queue
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.selection import decode_ids, encode_ids, select
from tests.conftest import Connect
from tests.dashboard.conftest import HOSTILE, OpenClient, operator, reader, text_of

OWN = {"origin": "http://localhost:8090", "sec-fetch-site": "same-origin"}
SECRET = "the secret content"


def bury(queue: Queue, channel: str, count: int, error: str, **options: Any) -> list[int]:
    queue.enqueue_many([NewMessage(channel=channel, payload=SECRET, **options) for _ in range(count)])
    leased = [message for message in queue.dequeue(limit=count) if message.channel == channel]
    assert len(leased) == count
    for message in leased:
        message.bury(error=error)
    return [message.id for message in leased]


def form_of(page: str, label: str) -> dict[str, str]:
    """Return the fields of the form behind a button, as a browser would send them."""
    forms = re.findall(r'<form method="post" action="([^"]*)">(.*?)</form>', page, re.DOTALL)
    for action, body in forms:
        if label in body:
            fields = dict(re.findall(r'name="([^"]*)" value="([^"]*)"', body))
            return {
                "to": html.unescape(action),
                **{name: html.unescape(value) for name, value in fields.items()},
            }
    raise AssertionError(f"there is no form {label!r}")


def send(browser: TestClient, form: dict[str, str], **more: str) -> Any:
    fields = {**form, **more}
    return browser.post(fields.pop("to"), data=fields, headers=OWN)


def test_ids_survive_the_form_whatever_they_are() -> None:
    for ids in ([1], [-5, 3], list(range(10_000)), [2**63 - 1, -(2**63)], [n**4 for n in range(3_000)]):
        text = encode_ids(ids)
        assert decode_ids(text) == sorted(ids)
        assert re.fullmatch(r"[A-Za-z0-9_=-]+", text)
    for distance, count in ((50_000, 10_000), (2**49, 5_000)):
        ids = [n * distance + n**7 % (distance // 2) for n in range(10_000)]
        chosen, text = select(ids)
        # The newest ones, as many as fit into a form.
        assert chosen == ids[:count]
        assert len(text) < 60_000
        assert decode_ids(text) == sorted(chosen)


@pytest.mark.parametrize(
    "text",
    [
        *("", "!", "eJw", "eJwDAAAAAAE=", "A" * 100_000, encode_ids([1, 2])[:-5], "é"),
        # A text that grows to a million bytes, and an id that is too large.
        "eJztwTEBAAAAwqD1T20JT6AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        encode_ids([2**70]),
    ],
)
def test_a_selection_that_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        decode_ids(text)


def test_a_bulk_redrive_changes_exactly_what_the_page_showed(client: OpenClient, queue: Queue) -> None:
    wanted = bury(queue, "acme", 7, "Traceback\nValueError: no disk")
    others = bury(queue, "acme", 3, "KeyError: 'x'") + bury(queue, "globex", 4, "ValueError: no disk")
    browser = client()
    page = browser.get("/failures?channel=acme&error=ValueError%3A+no+disk").text
    assert "All that this filter matches: 7" in text_of(page)
    # More arrive while the user reads, with the same error.
    late = bury(queue, "acme", 5, "ValueError: no disk")
    form = form_of(page, "Redrive 7")
    # What is confirmed does not change while the page is open.
    assert "All that this" not in browser.get("/failures?channel=acme", headers={"hx-request": "true"}).text
    assert send(browser, form, typed="6").status_code == 400
    assert send(browser, form, typed="").status_code == 400
    assert len(queue.messages("acme").items) == 0
    answer = send(browser, form, typed="7")
    # The filter survives the action.
    assert answer.headers["location"] == "/failures?channel=acme&error=ValueError%3A+no+disk"
    assert "7 redriven." in text_of(browser.get(answer.headers["location"]).text)
    assert sorted(one.id for one in queue.messages("acme").items) == sorted(wanted)
    assert sorted(queue.dead().ids().items) == sorted(others + late)
    (record,) = queue.audit.page().items
    assert (record.actor, record.verb, record.subject) == ("olga", "dead_redrive", "acme")
    assert record.outcomes == {"redriven": 7}
    assert record.arguments["error"] == "ValueError: no disk"
    assert sorted(map(int, record.arguments["ids"])) == sorted(wanted)
    # The same form again changes nothing.
    answer = send(browser, form, typed="7")
    assert "7 were no longer there" in text_of(browser.get(answer.headers["location"]).text)
    assert len(queue.messages("acme").items) == 7


def test_a_letter_that_was_redriven_and_failed_again_is_another_one(client: OpenClient, queue: Queue) -> None:
    """It has the same id."""
    first, _ = bury(queue, "acme", 2, "no disk")
    browser = client()
    page, alone = browser.get("/failures?error=no+disk").text, browser.get(f"/messages/{first}").text
    queue.dead().redrive([first])
    queue.dequeue()[0].bury(error="cannot parse it")
    for form, typed in ((form_of(page, "Delete 2"), "2"), (form_of(alone, "Delete this"), str(first))):
        assert send(browser, form, typed=typed).status_code == 303
        assert queue.dead().ids().items == [first]
    assert queue.audit.page().items[1].outcomes == {"purged": 1, "unknown": 1}
    # What is on the page now is deleted.
    alone = browser.get(f"/messages/{first}").text
    send(browser, form_of(alone, "Redrive"))
    queue.dequeue()[0].bury(error="no disk")
    page = browser.get("/failures?error=no+disk").text
    send(browser, form_of(page, "Delete 1"), typed="1")
    assert queue.dead().ids().items == []


def test_two_operators_who_confirm_the_same_letters_change_each_once(
    client: OpenClient, queue: Queue
) -> None:
    bury(queue, "acme", 200, "no disk")
    browsers = [client() for _ in range(2)]
    forms = [form_of(browser.get("/failures").text, "Redrive 200") for browser in browsers]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda pair: send(*pair, typed="200"), zip(browsers, forms, strict=True)))
    assert [answer.status_code for answer in answers] == [303, 303]
    assert len(queue.messages(limit=1000).items) == 200
    outcomes = [record.outcomes for record in queue.audit.page().items]
    assert sum(one.get("redriven", 0) for one in outcomes) == 200
    assert all(sum(one.values()) == 200 for one in outcomes)


def test_a_purge_says_what_it_could_not_delete(client: OpenClient, queue: Queue, connect: Connect) -> None:
    ids = bury(queue, "acme", 3, "no disk")
    queue.enqueue("acme", 1, key="k")
    queue.dequeue()[0].bury(error="no disk")
    queue.enqueue("acme", 1, key="k")
    browser = client()
    page = browser.get("/failures").text
    answer = send(browser, form_of(page, "Redrive 4"), typed="4")
    assert "3 redriven; 1 stay, because a live message has the same key." in text_of(
        browser.get(answer.headers["location"]).text
    )
    for message in queue.dequeue(limit=10):
        if message.id in ids:
            message.bury(error="no disk")
    holder = connect()
    holder.execute("begin")
    holder.execute("select from dead where message_id = %s for update", [ids[0]])
    page = browser.get("/failures?error=no+disk").text
    answer = send(browser, form_of(page, "Delete 4"), typed="4")
    holder.execute("rollback")
    assert "3 purged; 1 stay, because another transaction has them locked." in text_of(
        browser.get(answer.headers["location"]).text
    )
    assert queue.dead().ids().items == [ids[0]]


def test_failures_are_grouped_and_say_when_there_are_more(
    client: OpenClient, queue: Queue, connect: Connect
) -> None:
    bury(queue, "acme", 3, "Traceback (most recent call last):\n  x\nValueError: <b>no</b> disk\n")
    queue.enqueue("acme", 1)
    queue.dequeue()[0].bury()
    browser = client()
    page = browser.get("/failures").text
    assert "ValueError: &lt;b&gt;no&lt;/b&gt; disk" in page
    links = [html.unescape(link) for link in re.findall(r'<a class="error"[^>]* href="([^"]*)"', page)]
    assert len(links) == 2
    assert [len(re.findall('id="letter-', browser.get(link).text)) for link in links] == [3, 1]
    assert "There are more" not in page
    connect().execute(
        "insert into dead (message_id, channel, dequeue_at, created_at, buried_at, attempts, content, error)"
        " select -n, 'big', 1, 1, n, 1, 'x', 'error ' || n % 3 from generate_series(1, 10001) n"
    )
    page = text_of(browser.get("/failures").text)
    assert "Of the 10,000 dead letters that were buried last. There are more." in page
    assert "All that this filter matches: 10,000" in page
    assert "There are more dead letters." in page
    form = form_of(browser.get("/failures").text, "Redrive 10,000")
    assert len(decode_ids(form["ids"])) == 10_000
    assert send(browser, form, typed="10000").status_code == 303
    assert len(queue.dead().ids().items) == 5


def test_a_message_is_cancelled_hastened_redriven_and_purged(client: OpenClient, queue: Queue) -> None:
    browser = client()
    scheduled = queue.enqueue("acme", SECRET, delay=3600).id
    assert scheduled is not None
    page = browser.get(f"/messages/{scheduled}").text
    assert "scheduled" in text_of(page)
    assert SECRET in page
    answer = send(browser, form_of(page, "Run now"), action="run_now")
    assert "The message is due now" in text_of(browser.get(answer.headers["location"]).text)
    (message,) = queue.dequeue()
    assert message.id == scheduled
    # It is leased: the old page's button changes nothing.
    answer = send(browser, form_of(page, "Run now"), action="run_now")
    assert "A worker has the message already" in text_of(browser.get(answer.headers["location"]).text)
    message.bury(error="no disk")
    page = browser.get(f"/messages/{scheduled}").text
    assert "no disk" in page
    send(browser, form_of(page, "Redrive"), action="redrive")
    queue.dequeue()[0].bury(error="no disk")
    page = browser.get(f"/messages/{scheduled}").text
    assert send(browser, form_of(page, "Delete this dead letter"), typed="1234").status_code == 400
    assert queue.dead().show(scheduled) is not None
    assert send(browser, form_of(page, "Delete this dead letter"), typed=str(scheduled)).status_code == 303
    assert queue.dead().show(scheduled) is None
    waiting = queue.enqueue("acme", SECRET).id
    page = browser.get(f"/messages/{waiting}").text
    assert send(browser, form_of(page, "Cancel this message"), typed=str(waiting)).status_code == 303
    assert waiting is not None
    assert queue.show(waiting) is None
    assert [one.verb for one in queue.audit.page().items] == [
        *("message_cancel", "dead_purge", "dead_redrive", "message_run_now", "message_run_now")
    ]
    assert "unknown" in text_of(browser.get(f"/messages/{waiting}").text)
    assert browser.get(f"/messages/{waiting}").status_code == 404


def test_the_attempts_of_a_message_are_a_timeline(client: OpenClient, queue: Queue) -> None:
    queue.set(history="metadata")
    queue.history.prepare(days=1)
    message = queue.enqueue("acme", SECRET, keep_result=60).id
    queue.dequeue(worker="w1")[0].defer(error="Traceback\n  here\nOSError: <no> disk")
    queue.dequeue(worker="w2")[0].complete(result="the result")
    page = client().get(f"/messages/{message}").text
    shown = text_of(page)
    assert "completed" in shown
    assert "Attempt 2: completed" in shown
    assert "Attempt 1: deferred" in shown
    assert "by w1" in shown
    assert "OSError: <no> disk" in shown
    assert "OSError: &lt;no&gt; disk" in page
    assert "the result" in shown


def test_readers_see_no_contents_and_change_nothing(client: OpenClient, queue: Queue) -> None:
    queue.set(history="full")
    queue.history.prepare(days=1)
    waiting = queue.enqueue("acme", SECRET, headers={"x": SECRET}, delay=3600).id
    (dead,) = bury(queue, "acme", 1, "no disk", headers={"x": SECRET})
    done = queue.enqueue("acme", SECRET, keep_result=60).id
    queue.dequeue()[0].complete(result=SECRET)
    roles = {"operator": operator, "reader": reader}
    browser = client(access=lambda request: roles[request.headers.get("x-role", "reader")](request))
    for path in ("/messages", "/failures", *(f"/messages/{id_}" for id_ in (waiting, dead, done))):
        answer = browser.get(path)
        assert answer.status_code == 200
        assert SECRET not in answer.text
        assert '<form method="post"' not in answer.text
    assert SECRET in browser.get(f"/messages/{waiting}", headers={"x-role": "operator"}).text
    rita = browser.app.guard.token(browser.cookies["lonnymq_session"], "rita")  # type: ignore[attr-defined]
    for path, fields in {
        f"/messages/{waiting}": {"action": "cancel", "typed": str(waiting)},
        f"/messages/{dead}": {"action": "redrive"},
        "/failures": {"action": "purge", "typed": "1", "ids": encode_ids([dead])},
        "/crons": {"action": "pause", "name": "x"},
        "/workers": {"action": "drain_all", "typed": "drain all"},
    }.items():
        answer = browser.post(path, data={**fields, "token": rita}, headers=OWN)
        assert (answer.status_code, "You may look" in answer.text) == (403, True)
    assert queue.audit.page().items == []
    assert waiting is not None
    assert queue.show(waiting) is not None
    assert queue.dead().show(dead) is not None


def test_hostile_values_are_shown_as_text_in_every_field(client: OpenClient, queue: Queue) -> None:
    queue.set(history="metadata")
    queue.history.prepare(days=1)
    browser = client()
    for name in HOSTILE:
        headers = {name[:50]: name}
        queue.enqueue(name, name, key=name, headers=headers, delay=3600)
        queue.enqueue(name, name, headers=headers)
        queue.dequeue(worker=name)[0].defer(error=f"trace\n{name}", state=name.encode())
        queue.dequeue(worker=name)[0].bury(error=f"trace\n{name}")
        queue.cron.set(name[:200], "0 3 * * *", channel=name, payload=name)
        with queue.audit.action(name, name[:100], name, {name: name}) as action:
            action.outcomes.append(name[:100])
    ids = [one.id for one in queue.messages().items] + queue.dead().ids().items
    groups = queue.dead().groups().groups
    paths = ["/messages", "/failures", "/crons", "/audit", *(f"/messages/{id_}" for id_ in ids)]
    for path in paths:
        # The values of fields are sent back as they are.
        page = re.sub(r"<input[^>]*>", "", browser.get(path).text)
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "49" not in re.findall(r"<bdi>(.*?)</bdi>", page)
        assert "\u202e" not in page
        assert "\u200b" not in page
    assert len(groups) == len({f"{name}".strip()[:200] for name in HOSTILE})


def test_an_address_that_is_not_valid_is_explained(client: OpenClient) -> None:
    browser = client()
    for path in (
        *("/messages/x", "/messages/9223372036854775808", "/messages/1e3", "/messages/٣", "/messages?id=x"),
        *(
            "/messages?channel=a&prefix=a",
            "/messages?status=dead",
            "/messages?before=1",
            "/failures?before=x",
            "/audit?before=1_2_3",
            *(f"/{page}?before={2**63}_1" for page in ("messages", "failures", "audit")),
            f"/messages?channel=a&before=1_-{2**63 + 1}",
        ),
        *(f"/messages?channel={'x' * 256}", f"/failures?error={'x' * 300}", "/messages?channel=%00"),
        *("/messages?channel=%01", "/crons?after=%00", "/workers?after=%00"),
    ):
        answer = browser.get(path)
        assert answer.status_code in (400, 404), path
        assert "Something went wrong" not in answer.text


def test_big_ids_are_never_rounded(client: OpenClient, queue: Queue, connect: Connect) -> None:
    big = 2**63 - 2
    connect().execute("select setval(pg_get_serial_sequence('message', 'id'), %s, false)", [big])
    assert queue.enqueue("acme", 1, delay=3600).id == big
    browser = client()
    assert f">{big}</a>" in browser.get("/messages").text
    assert browser.get(f"/messages?id={big}").headers["location"] == f"/messages/{big}"
    page = browser.get(f"/messages/{big}").text
    assert send(browser, form_of(page, "Cancel this message"), typed=str(big)).status_code == 303
    assert queue.messages().items == []
    assert queue.audit.page().items[0].subject == str(big)


def test_messages_are_filtered_by_the_beginning_of_their_channel(client: OpenClient, queue: Queue) -> None:
    for n in range(120):
        queue.enqueue(f"{'eu' if n % 2 else 'us'}-{n % 3}", n, delay=3600)
    browser = client()
    page = browser.get("/messages?prefix=eu-&status=scheduled").text
    assert len(re.findall('id="message-', page)) == 50
    (next_page,) = re.findall(r'rel="next" href="([^"]+)"', page)
    assert len(re.findall('id="message-', browser.get(html.unescape(next_page)).text)) == 10
    # Another status keeps the filter.
    assert 'href="/messages?prefix=eu-&amp;status=leased"' in page
