"""The state in which every schedule of a scenario begins, and what is committed at a moment."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lonnymq.schema import files
from tests.interleavings.sessions import Control

START_US = 1_800_000_000_000_000
SEQUENCES = (
    "interleavings.clock_us",
    "lonnymq.message_id_seq",
    "lonnymq.wake_id_seq",
    "lonnymq.policy_change_id_seq",
)
# Tables that are only locked, or that the calls that are examined do not change; history is emptied.
NOT_RESTORED = ("creation_lock", "migration", "history")
# The setting in which a session keeps its hints, as message_dequeue names it.
HINTS = re.findall(r"c_setting constant text := (.+);", files.read("functions/message_dequeue.sql").text)[0]
# Lets this session's next dequeue begin with a full scan.
FORGET_HINTS = f"""
    create function interleavings.hints_forget() returns void language sql volatile
    set search_path = lonnymq, pg_catalog as $$ select set_config({HINTS}, '', false) $$
"""
# All but those that are computed from others.
COLUMNS = (
    "select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute"
    " where attrelid = 'lonnymq.{}'::regclass and attnum > 0 and not attisdropped and attgenerated = ''"
)
FACTS = """
    select
      (select queue_event()),
      array(select array[l.message_id, l.token] from lease l order by l.message_id),
      array(select m.id from message m join interleavings.name n using (channel_id)
        where n.channel = 'a' and not exists (select from lease l where l.message_id = m.id)
        order by m.dequeue_at, m.id),
      array(select m.id from message m join interleavings.name n using (channel_id)
        where n.channel = 'a' and not exists (select from lease l where l.message_id = m.id)
        order by m.dequeue_at desc, m.id desc limit 1),
      array(select d.message_id from dead d order by d.message_id),
      (select c.id::text from claim c limit 1),
      (select c.mark_at::text from cron c limit 1),
      coalesce((select m.id from message m where m.key = 'k'), 0),
      interleavings.tenant_role(),
      array(select array[u.id::text, message_uuid(u.id)::text]
        from (select m.id from message m union all select d.message_id from dead d) u)
"""


@dataclass(frozen=True)
class Facts:
    """What a scenario's state contains, for the calls that refer to it."""

    event: str
    # Message and token of each lease.
    leases: list[tuple[int, int]]
    # The messages of channel a that wait, in the order of their release.
    waiting: list[int]
    # The last one of these, which may be scheduled.
    last: list[int]
    dead: list[int]
    claim: str | None
    cron_mark: str | None
    # The message with the key k; 0 if there is none.
    keyed: int
    # The role of the tenant, and the uuids that it knows messages and dead letters by.
    tenant: str
    uuids: dict[int, str]


@dataclass(frozen=True)
class State:
    """What is committed at a moment."""

    now_us: int
    # Channel and dequeue_at of each message.
    messages: dict[int, tuple[str, int]]
    # Channel, token, attempt, leased_at and unlock_at by message.
    leases: dict[int, tuple[str, int, int, int, int]]
    dead: set[int]
    # max_concurrency, release_interval_ms and is_paused by channel.
    limits: dict[str, tuple[int | None, int | None, bool]]
    # max_size by channel.
    sizes: dict[str, int]
    # How often each message ended an attempt in each way, as recorded; None if history is off.
    history: Counter[tuple[int, str]] | None
    # Message, outcome and content of each result, and the live messages whose results will be kept.
    results: list[tuple[int, str, str | None]]
    kept: set[int]


@dataclass
class States:
    """Builds a state from calls, saves it, and returns to it."""

    control: Control
    # The hints of a session that dequeued before the state was built; empty: those of a new session.
    hints: str = ""
    _tables: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._tables = [name for name in files.created("table") if name not in NOT_RESTORED]
        self.control.execute("select setval('interleavings.clock_us', %s)", [START_US])
        self._empty = {name: self._last_value(name) for name in SEQUENCES}
        self.control.execute(FORGET_HINTS.encode())
        self._create_restore()

    def build(self, setup: Sequence[str], hints: str) -> Facts:
        """Empty the queue and make these calls. The state that they leave is the one to return to."""
        self.clear()
        for name, last_value in self._empty.items():
            self.control.execute("select interleavings.set_sequence(%s, %s)", [name, last_value])
        self.hints = self._warm_hints(is_expensive=hints == "expensive") if hints != "cold" else ""
        self.control.execute("select interleavings.hints_forget()")
        for text in setup:
            self.control.execute(text.encode())
        self._save()
        row = self.control.execute(FACTS).fetchone()
        assert row is not None
        event, leases, *rest, uuids = row
        rest.append({int(id_): text for id_, text in uuids})
        return Facts(event, [(id_, token) for id_, token in leases], *rest)

    def restore(self) -> None:
        self.control.execute("select interleavings.restore()")

    def clear(self) -> None:
        self.control.execute("select interleavings.history_clear()")
        for name in self._tables:
            if name != "setting":
                self.control.execute(f"delete from lonnymq.{name}".encode())
        self.control.execute(
            "update setting set history = 'off', max_concurrency = null, release_interval_ms = null"
        )

    def read(self) -> State:
        found = self._value("select interleavings.state()")
        return State(
            found["now_us"],
            {id_: (channel, at) for id_, channel, at in found["messages"] or []},
            {id_: tuple(rest) for id_, *rest in found["leases"] or []},
            set(found["dead"] or []),
            {name: tuple(rest) for name, *rest in found["limits"] or []},
            found["sizes"] or {},
            Counter(map(tuple, found["history"] or [])) if found["has_history"] else None,
            [tuple(one) for one in found["results"] or []],
            set(found["kept"] or []),
        )

    def _warm_hints(self, *, is_expensive: bool) -> str:
        """Return the hints of a session that has asked the empty queue before."""
        self.control.execute("select * from message_dequeue()")
        hints: str = self._value(f"select current_setting({HINTS})")
        if is_expensive:
            # As if its full scan had taken 20 ms: it relies on its hints for a while.
            first, _, *rest = hints.split(",")
            hints = ",".join([first, "20000", *rest])
        return hints

    def _create_restore(self) -> None:
        """One function, because its plans are kept."""
        lines = ["perform interleavings.history_clear();"]
        for name in self._tables:
            saved = f"interleavings.saved_{name}"
            self.control.execute(f"create table {saved} as table lonnymq.{name}".encode())
            lines.append(f"delete from lonnymq.{name};")
            columns = self._value(COLUMNS.format(name))
            lines.append(
                f"insert into lonnymq.{name} ({columns}) overriding system value"
                f" select {columns} from {saved};"
            )
        self.control.execute("create table interleavings.saved_sequence (name text, last_value bigint)")
        lines.append(
            "perform interleavings.set_sequence(s.name, s.last_value) from interleavings.saved_sequence s;"
        )
        body = f"$$ begin {' '.join(lines)} end $$"
        create = f"create function interleavings.restore() returns void language plpgsql as {body}"
        self.control.execute(create.encode())

    def _save(self) -> None:
        with self.control.transaction():
            for name in self._tables:
                self.control.execute(f"truncate interleavings.saved_{name}".encode())
                self.control.execute(f"insert into interleavings.saved_{name} table lonnymq.{name}".encode())
            self.control.execute("truncate interleavings.saved_sequence")
            for name in SEQUENCES:
                insert = "insert into interleavings.saved_sequence values (%s, %s)"
                self.control.execute(insert, [name, self._last_value(name)])

    def _last_value(self, sequence: str) -> int | None:
        """Return the last value of a sequence, or None if it has not been used."""
        last: int | None = self._value(f"select pg_sequence_last_value('{sequence}')")
        return last

    def _value(self, query: str) -> Any:
        row = self.control.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]
