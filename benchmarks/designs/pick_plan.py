"""Explains the statements of a pick, in a form short enough to read."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

AUTO_EXPLAIN_SETTINGS = {
    "client_min_messages": "notice",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}
Node = dict[str, Any]


@dataclass(frozen=True)
class PickPlan:
    """What a pick did: the pages it touched, which do not depend on the load, and its plan nodes."""

    pages: int
    lines: tuple[str, ...]


def explain(connection: psycopg.Connection[Any], statements: list[str]) -> PickPlan:
    """Run the statements and return what they did; inside functions too, if auto_explain is available."""
    pages, lines = 0, []
    nested: list[str] = []

    def collect(notice: psycopg.errors.Diagnostic) -> None:
        nested.append(notice.message_primary or "")

    with log_nested_plans(connection), connection.transaction():
        connection.add_notice_handler(collect)
        for statement in statements:
            nested.clear()
            explain = f"explain (analyze, buffers, timing off, format json) {statement}"
            row = connection.execute(explain.encode(), prepare=False).fetchone()
            assert row is not None
            root = row[0][0]["Plan"]
            pages += pages_of(root)
            is_function = any(node["Node Type"] == "Function Scan" for _, node in nodes(root))
            lines += (function_lines(nested) if is_function else []) or plan_lines(root)
        connection.remove_notice_handler(collect)
    return PickPlan(pages, tuple(lines))


@contextlib.contextmanager
def log_nested_plans(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Have the plans of statements inside functions sent as notices, if the server can do that."""
    try:
        connection.execute("load 'auto_explain'")
    except psycopg.Error:
        yield  # not every server has it, and not every role may load it
        return
    for name, value in AUTO_EXPLAIN_SETTINGS.items():
        connection.execute("select set_config(%s, %s, false)", (name, value))
    yield
    connection.execute("select set_config('auto_explain.log_min_duration', '-1', false)")


def function_lines(messages: list[str]) -> list[str]:
    """Return the plans that were logged while functions ran, except those that touched no table."""
    lines: list[str] = []
    for message in messages:
        document = message[message.find("{") :]
        try:
            root = json.loads(document)["Plan"]
        except (ValueError, KeyError):
            continue
        if any("Relation Name" in node and node["Node Type"] != "ModifyTable" for _, node in nodes(root)):
            lines += plan_lines(root)
    return lines


def plan_lines(root: Node) -> list[str]:
    return ["  " * depth + node_line(node) for depth, node in nodes(root)]


def node_line(node: Node) -> str:
    """Describe a plan node: its type, what it reads, and how much."""
    kind = node["Node Type"]
    if kind == "ModifyTable":
        kind = node.get("Operation", kind)
    description = [kind]
    if "Index Name" in node:
        description.append(f"using {node['Index Name']}")
    if "Relation Name" in node:
        description.append(f"on {node['Relation Name']}")
    rows = round(node.get("Actual Rows", 0) * node.get("Actual Loops", 1))
    facts = [f"{rows:,} rows" if rows != 1 else "1 row"]
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    if removed:
        facts.append(f"{round(removed * node.get('Actual Loops', 1)):,} removed")
    facts.append(f"{pages_of(node):,} pages")
    return f"{' '.join(description)} ({', '.join(facts)})"


def nodes(root: Node, depth: int = 0) -> Iterator[tuple[int, Node]]:
    yield depth, root
    for child in root.get("Plans", []):
        yield from nodes(child, depth + 1)


def pages_of(node: Node) -> int:
    return int(node.get("Shared Hit Blocks", 0) + node.get("Shared Read Blocks", 0))
