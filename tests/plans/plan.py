"""What PostgreSQL does in a call: plans by auto_explain, scans by the statistics, pages by EXPLAIN."""

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from psycopg import errors

from tests.sql.session import Session

HOT = ("turn", "message", "lease", "wake")
INTENDED = {
    *("message_order_ix", "message_pkey", "message_key_ix"),
    *("lease_pkey", "lease_unlock_ix"),
    *("wake_lane_ix", "wake_channel_ix"),
    *("turn_channel_ix", "turn_next_ix", "turn_return_ix"),
}
SCANS = {"Index Scan", "Index Only Scan", "Tid Scan", "ModifyTable"}
BIG_JOINS = {"Hash Join", "Merge Join"}


@dataclass
class Plans:
    """The query plans of all statements that ran, including nested ones."""

    found: list[dict[str, Any]] = field(default_factory=list)

    def violations(self, max_removed: int) -> list[str]:
        """Return what the executed plans did that is not intended."""
        return sorted(
            {one for plan in self.found for one in self._violations(plan["Plan"], plan, max_removed)}
        )

    def _violations(self, node: dict[str, Any], plan: dict[str, Any], max_removed: int) -> Iterator[str]:
        if node.get("Actual Loops") == 0:
            return
        kind, table, index = node["Node Type"], node.get("Relation Name"), node.get("Index Name")
        where = " ".join(plan.get("Query Text", "").split())[:160]
        if table in HOT:
            if kind not in SCANS:
                yield f"{kind} on {table} in: {where}"
            if kind.startswith("Index") and "Index Cond" not in node:
                yield f"whole {index} read in: {where}"
            removed = node.get("Rows Removed by Filter", 0) * max(1, node.get("Actual Loops", 1))
            if removed > max_removed:
                yield f"{removed} rows of {table} read needlessly in: {where}"
        if index and table in HOT and index not in INTENDED:
            yield f"{index} used in: {where}"
        if kind.startswith("Bitmap") and (index is None or index in INTENDED):
            yield f"{kind} by {index} in: {where}"
        if kind in BIG_JOINS and set(HOT) & set(tables_below(node)):
            yield f"{kind} in: {where}"
        for below in node.get("Plans", []):
            yield from self._violations(below, plan, max_removed)


def tables_below(node: dict[str, Any]) -> Iterator[str]:
    if "Relation Name" in node:
        yield node["Relation Name"]
    for below in node.get("Plans", []):
        yield from tables_below(below)


def can_explain(session: Session) -> bool:
    """Return whether this server has auto_explain: Debian's has it, the wheel's does not."""
    try:
        session.run("load 'auto_explain'")
    except errors.UndefinedFile:
        return False
    return True


@contextmanager
def collect_plans(session: Session) -> Iterator[Plans]:
    """Collect the plans of all statements of this session; none if auto_explain is missing."""
    plans = Plans()
    if not can_explain(session):
        yield plans
        return

    def on_notice(diagnostic: Any) -> None:
        _, found, text = (diagnostic.message_primary or "").partition("plan:\n")
        if found:
            plans.found.append(json.loads(text))

    session.connection.add_notice_handler(on_notice)
    for setting, value in {
        "auto_explain.log_min_duration": "0",
        "auto_explain.log_nested_statements": "on",
        "auto_explain.log_analyze": "on",
        "auto_explain.log_timing": "off",
        "auto_explain.log_buffers": "on",
        "auto_explain.log_format": "json",
        "client_min_messages": "log",
    }.items():
        session.run("select set_config(%s, %s, false)", setting, value)
    yield plans
    session.run("set client_min_messages = notice")
    session.run("set auto_explain.log_min_duration = -1")
    session.connection.remove_notice_handler(on_notice)


@dataclass(frozen=True)
class Scans:
    """The scans of the hot tables since the database was created."""

    sequential: Counter[str]
    entries: Counter[str]

    def __sub__(self, other: "Scans") -> "Scans":
        return Scans(self.sequential - other.sequential, self.entries - other.entries)


def flush_statistics(session: Session) -> None:
    """Make the server's statistics include what this session did."""
    if session.connection.info.server_version >= 150000:
        session.run("select pg_stat_force_next_flush()")
    else:
        # A session reports to the statistics collector at most twice a second, and only when it is active.
        time.sleep(0.6)
        session.run("select 1")
        time.sleep(0.6)
    session.run("select pg_stat_clear_snapshot()")


def scans(session: Session) -> Scans:
    flush_statistics(session)
    sequential = session.rows(
        "select relname, seq_scan from pg_stat_user_tables where relname = any(%s)", list(HOT)
    )
    entries = session.rows(
        "select indexrelname, idx_tup_read from pg_stat_user_indexes where relname = any(%s)", list(HOT)
    )
    return Scans(Counter(dict(sequential)), Counter(dict(entries)))


def pages(session: Session, call: str, *values: Any) -> int:
    """Run a call and return the number of pages it touched."""
    plan = session.ask(f"explain (analyze, buffers, format json) select * from {call}", *values)[0]["Plan"]
    touched: int = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return touched
