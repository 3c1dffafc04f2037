"""Invalid arguments are refused with name, value and what is allowed; if possible, without a round trip."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import repeat
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lonnymq import ClientSettings, InvalidArgument, NewMessage, Queue, Worker

# Nothing listens there: anything that needs a round trip fails in another way.
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
LEASE = SimpleNamespace(id=1, token=2)
NAIVE = datetime(2026, 1, 1)

REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda queue: queue.enqueue("", 1), r"channel must be 1 to 255 characters, got ''"),
    (lambda queue: queue.enqueue("x" * 256, 1), r"channel must be 1 to 255 characters, got 'xxx.*\.\.\.$"),
    (lambda queue: queue.enqueue(None, 1), r"channel must be 1 to 255 characters, got None"),
    (lambda queue: queue.enqueue(b"a", 1), r"channel must be .*, got b'a'"),
    (lambda queue: queue.enqueue("a\nb", 1), r"channel must be .* without control characters, got 'a\\nb'"),
    (lambda queue: queue.enqueue("a\0b", 1), r"channel must be .* without NUL.*, got 'a\\x00b'"),
    (lambda queue: queue.enqueue("a\ud800", 1), r"channel must be .*no lone surrogates.*, got 'a\\ud800'"),
    (
        lambda queue: queue.enqueue("a", {1}),
        r"payload must be bytes, or a value that the codec can encode .*, got \{1\}",
    ),
    (lambda queue: queue.enqueue("a", float("nan")), r"payload must be .*, got nan"),
    (lambda queue: queue.enqueue("a", "\ud800"), r"payload must be .*surrogates.*, got '\\ud800'"),
    (lambda queue: queue.enqueue("a", bytes(67_108_865)), r"payload must be at most 67108864 bytes"),
    (lambda queue: queue.enqueue("a", 1, at=NAIVE), r"at must be an aware datetime"),
    (lambda queue: queue.enqueue("a", 1, at=1.5), r"at must be an aware datetime.*, got 1.5"),
    (lambda queue: queue.enqueue("a", 1, delay=-1), r"delay must be .* not negative, got -1"),
    (lambda queue: queue.enqueue("a", 1, delay=timedelta(seconds=-1)), r"delay must be"),
    (lambda queue: queue.enqueue("a", 1, delay=float("inf")), r"delay must be .*, got inf"),
    (lambda queue: queue.enqueue("a", 1, delay="soon"), r"delay must be .*, got 'soon'"),
    (lambda queue: queue.enqueue("a", 1, delay=timedelta(days=40_000)), r"delay must be .* 100 years"),
    (lambda queue: queue.enqueue("a", 1, priority=0), r"priority must be a whole number between 1 and"),
    (lambda queue: queue.enqueue("a", 1, priority=True), r"priority must be .*, got True"),
    (
        lambda queue: queue.enqueue("a", 1, priority=2, delay=3),
        r"only one of at, delay and priority may be given",
    ),
    (
        lambda queue: queue.enqueue("a", 1, at=datetime.now(UTC), priority=1),
        r"only one of at, delay and priority may be given",
    ),
    (lambda queue: queue.enqueue("a", 1, key=""), r"key must be 1 to 255 characters, got ''"),
    (lambda queue: queue.enqueue("a", 1, key="k\0"), r"key must be .* without NUL"),
    (lambda queue: queue.enqueue("a", 1, key=7), r"key must be .*, got 7"),
    (lambda queue: queue.enqueue("a", 1, max_attempts=0), r"max_attempts must be a whole number between 1"),
    (lambda queue: queue.enqueue("a", 1, max_attempts=2**31), r"max_attempts must be .*, got 2147483648"),
    (
        lambda queue: queue.enqueue_many([{"channel": "a"}]),
        r"messages must be a sequence of NewMessage values",
    ),
    (
        lambda queue: queue.enqueue_many(
            [NewMessage(channel="a", payload=1), NewMessage(channel="", payload=2)]
        ),
        r"^messages\[1\]: channel must be",
    ),
    (lambda queue: queue.copy_in([NewMessage(channel="a", payload=1)], publication=""), r"publication must"),
    (lambda queue: queue.dequeue(0), r"limit must be a whole number between 1 and 10000, got 0"),
    (lambda queue: queue.dequeue(10_001), r"limit must be .*, got 10001"),
    (lambda queue: queue.dequeue("1"), r"limit must be .*, got '1'"),
    (lambda queue: queue.dequeue(lease_s=0), r"lease_s must be a number of seconds between 0.001 and 86400"),
    (lambda queue: queue.dequeue(lease_s="1"), r"lease_s must be .*, got '1'"),
    (lambda queue: queue.dequeue(worker="w" * 256), r"worker must be 0 to 255 characters"),
    (lambda queue: queue.dequeue(wait=-1), r"wait must be .*, got -1"),
    (lambda queue: queue.dequeue(wait=1, connection=object()), r"wait must be absent if connection is given"),
    (lambda queue: queue.heartbeat([LEASE], lease_s=0), r"lease_s must be"),
    (lambda queue: queue.defer([LEASE], delay=-1), r"delay must be"),
    (
        lambda queue: queue.defer([LEASE], delays=[1, 2]),
        r"delays must be a sequence with one value per message \(1\), got '2 val",
    ),
    (lambda queue: queue.defer([LEASE], delay=1, delays=[1]), r"delay must be absent if delays are given"),
    (
        lambda queue: queue.defer([LEASE], state={1}),
        r"state must be bytes, or a value that the codec can encode",
    ),
    (lambda queue: queue.complete([SimpleNamespace(id="1", token=2)]), r"messages must be .*, got '1'"),
    (lambda queue: queue.cancel([2**63]), r"ids must be a whole number between"),
    (lambda queue: queue.cancel_key("a", ""), r"key must be 1 to 255 characters"),
    (lambda queue: queue.channel("\t"), r"channel must be"),
    (lambda queue: queue.channel("a").set(weight=0), r"weight must be a whole number between 1 and 1000"),
    (lambda queue: queue.channel("a").set(max_concurrency=-1), r"max_concurrency must be"),
    (lambda queue: queue.channel("a").set(release_interval_ms=1.5), r"release_interval_ms must be"),
    (
        lambda queue: queue.channel("a").set(is_paused="no"),
        r"is_paused must be True, False or None, got 'no'",
    ),
    (lambda queue: queue.dead().list(limit=0), r"limit must be"),
    (lambda queue: queue.dead().redrive_all(), r"channel must be given for redrive_all\(\)"),
    (lambda queue: queue.dead("a").purge_all(before=NAIVE), r"before must be an aware datetime"),
    (lambda queue: queue.dead("a").purge([None]), r"ids must be"),
    (lambda queue: queue.history.prepare(days=-1), r"days must be a whole number between 0 and 366"),
    (lambda queue: queue.history.prune(timedelta(days=-1)), r"older_than must be .* not negative"),
    (lambda queue: queue.history.prune(30), r"older_than must be an aware datetime"),
    (lambda queue: queue.set(history="some"), r"history must be one of off, metadata, full, got 'some'"),
    (lambda queue: queue.set(max_content_bytes=0), r"max_content_bytes must be"),
    (lambda queue: queue.set(quantum=0), r"quantum must be a whole number between 1 and 100"),
    (lambda queue: queue.grant("r", "king"), r"kind must be one of producer, worker, operator, reader"),
    (lambda queue: queue.grant("", "reader"), r"role must be 1 to 63 characters"),
]


# Each is called with an int, with None and with an object, none of which is iterable.
TAKE_SEVERAL: dict[str, Callable[[Any, Any], Any]] = {
    "messages": lambda queue, several: queue.enqueue_many(several),
    "members": lambda queue, several: queue.enqueue_group(several, NewMessage(channel="a", payload=1)),
    "messages of copy_in": lambda queue, several: queue.copy_in(several),
    "messages of a tenant": lambda queue, several: queue.tenant.enqueue_many(several),
    "messages to complete": lambda queue, several: queue.complete(several),
    "messages to extend": lambda queue, several: queue.heartbeat(several),
    "ids": lambda queue, several: queue.cancel(several),
    "ids to run": lambda queue, several: queue.run_now(several),
    "ids to redrive": lambda queue, several: queue.dead().redrive(several),
    "ids to purge": lambda queue, several: queue.dead().purge(several),
    "uuids": lambda queue, several: queue.tenant.cancel(several),
    "uuids to redrive": lambda queue, several: queue.tenant.redrive(several),
    "names": lambda queue, several: queue.cron.due(several),
    "outcomes": lambda queue, several: queue.audit.record("a", "b", outcomes=several, connection=None),
    "middleware": lambda queue, several: Queue(NOWHERE, middleware=several),
    "middleware of a worker": lambda queue, several: Worker(queue, print, middleware=several),
}
# What has no bound of its own is refused only if it is endless.
ENDLESS = [name for name in TAKE_SEVERAL if "copy_in" not in name]

# Values of a wrong type that are no sequences.
WRONG_KINDS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda queue: queue.defer([LEASE], delays=5), r"delays must be a sequence with one value per message"),
    (
        lambda queue: queue.defer([LEASE], delays={LEASE.id: 5}),
        r"delays must be .*of type dict",
    ),
    (lambda queue: queue.bury([LEASE], errors="x"), r"errors must be .*, got a value of type str"),
    (lambda queue: queue.complete([LEASE], results=iter([1, 2])), r"results must be .*, got '2 values'"),
    (lambda queue: queue.channel("a").set_policy({"weight": 2}), r"policy must be a ChannelPolicy"),
    (lambda queue: queue.set(default_policy={"wieght": 2}), r"a default policy has no field 'wieght'"),
    (lambda queue: queue.grant("r", "tenant", channels="acme"), r"channels must be a sequence of names"),
    (lambda queue: queue.group_results(5), r"callback must be a leased message, got 5"),
    (lambda queue: queue.messages(before=5), r"before must be a PageCursor"),
    (lambda queue: queue.dead().page(before="7_1"), r"before must be a PageCursor"),
    (lambda queue: queue.audit.page(before=5), r"before must be a PageCursor"),
    (lambda queue: queue.audit.record("a", "b", arguments="c", connection=None), r"arguments must be a map"),
    (lambda queue: queue.cron.declare(5), r"cron must be a Cron"),
    (lambda queue: queue.cron.tick(5, 6), r"due must be a DueCron"),
    (lambda queue: queue.stage_prune(older_than="x"), r"older_than must be a timedelta or a number"),
    (lambda queue: queue.stage_prune(older_than=None), r"older_than must be a timedelta or a number"),
    (lambda queue: queue.copy_in([], on_progress=5), r"on_progress must be a function"),
    (
        lambda queue: Worker(queue, print, middleware=cast("Any", [5])),
        r"middleware must be a sequence of async functions",
    ),
]


@pytest.mark.parametrize("name", TAKE_SEVERAL)
def test_what_is_no_sequence_is_refused(name: str) -> None:
    with Queue(NOWHERE) as queue:
        for value in (5, None, object()):
            with pytest.raises(InvalidArgument, match=rf"^{name.split()[0]} must be .*, got "):
                TAKE_SEVERAL[name](queue, value)


@pytest.mark.parametrize("name", ENDLESS)
def test_a_sequence_without_end_is_refused(name: str) -> None:
    with (
        Queue(NOWHERE) as queue,
        pytest.raises(InvalidArgument, match=rf"^{name.split()[0]} must be at most 1000"),
    ):
        TAKE_SEVERAL[name](queue, repeat(None))


@pytest.mark.parametrize(("call", "complaint"), WRONG_KINDS)
def test_a_value_of_a_wrong_type_is_refused(call: Callable[[Any], Any], complaint: str) -> None:
    with Queue(NOWHERE) as queue, pytest.raises(InvalidArgument, match=complaint):
        call(queue)


@pytest.mark.parametrize(("call", "complaint"), REFUSED)
def test_an_invalid_argument_is_refused_before_any_round_trip(
    call: Callable[[Any], Any], complaint: str
) -> None:
    with Queue(NOWHERE) as queue, pytest.raises(InvalidArgument, match=complaint) as caught:
        call(queue)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("schema", ["", "x" * 64, "ü" * 32, "a\0", "public", "pg_queue", "pg_catalog", 7])
def test_an_invalid_schema_name_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidArgument, match="schema must be"):
        Queue(NOWHERE, schema=schema)


@pytest.mark.parametrize("dsn", ["nonsense", "postgresql://[::1", 7, None])
def test_an_invalid_dsn_is_refused(dsn: Any) -> None:
    with pytest.raises(InvalidArgument, match="dsn must be"):
        Queue(dsn)


@pytest.mark.parametrize("timeout", ["abc", "1.5", "-1"])
def test_an_invalid_connect_timeout_is_refused(timeout: str) -> None:
    with pytest.raises(InvalidArgument, match=f"connect_timeout in dsn must be .* got '{timeout}'"):
        Queue(f"postgresql://localhost/x?connect_timeout={timeout}")


@pytest.mark.parametrize(
    "settings",
    [{"pool_max_size": 0}, {"pool_min_size": 5, "pool_max_size": 4}, {"poll_s": 0}, {"retry_for_s": -1}],
)
def test_invalid_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="must be"):
        ClientSettings(**settings)


def test_a_message_larger_than_the_queue_allows_is_refused(queue: Any) -> None:
    queue.set(max_content_bytes=10)
    with pytest.raises(InvalidArgument, match="content must be at most 10 bytes, got 11 bytes"):
        queue.enqueue("a", b"12345678901")
    with pytest.raises(InvalidArgument, match="at most 10"):
        queue.enqueue_many([NewMessage(channel="a", payload=b"12345678901")])
    with pytest.raises(InvalidArgument, match="at most 10 bytes, got 11"):
        queue.copy_in([NewMessage(channel="a", payload=b"12345678901")])


def test_an_unknown_role_is_refused(queue: Any) -> None:
    with pytest.raises(InvalidArgument, match="role must be the name of an existing role"):
        queue.grant("nobody at all", "reader")


def test_repeated_messages_in_one_call_are_refused(queue: Any) -> None:
    queue.enqueue("a", 1)
    message = queue.dequeue()[0]
    with pytest.raises(InvalidArgument, match="messages must be distinct, got '1 repeated messages'"):
        queue.complete([message, message])


def test_too_many_messages_in_one_call_are_refused(queue: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"at most 100000; use copy_in\(\)"):
        queue.enqueue_many(NewMessage(channel="a", payload=1) for _ in range(100_001))
