"""Generate SQL and reference from the fields of a policy: `python tools/policy.py [--check]`.

The policy is defined in model/policy.py. Each target has blocks between two comment lines, the first with
`<name>: written by tools/policy.py`, the second with `end of <name>`; only these are written.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

from lonnymq.model.policy import DEFAULT_POLICY_FIELDS, LARGEST, POLICY_FIELDS, PolicyField

ROOT = Path(__file__).resolve().parent.parent
SQL = ROOT / "src" / "lonnymq" / "sql"
FIELDS = tuple(POLICY_FIELDS.values())
DEFAULT_FIELDS = tuple(DEFAULT_POLICY_FIELDS.values())
# How the table channel stores that a limit is lifted.
LIFTED = -1

Blocks = Mapping[str, Callable[[], str]]


def columns() -> str:
    """Return the columns of the table channel, with their check constraints.

    Null means that the queue's default policy applies, -1 that the limit is lifted.
    """
    return ",\n".join(_column(field, _check(field)) for field in FIELDS)


def default_columns() -> str:
    """Return the columns of the table setting; null means that the default policy has no such field."""
    return ",\n".join(_column(field, _range_check(field)) for field in DEFAULT_FIELDS)


def _column(field: PolicyField, check: str) -> str:
    if field.is_flag:
        return f"{field.name} {field.sql_type} not null default {_literal(field.default)}"
    return f"{field.name} {field.sql_type} check ({check})"


def _check(field: PolicyField) -> str:
    if field.is_flag:
        return ""
    lifted = f" or {field.name} = {LIFTED}" if field.can_be_lifted else ""
    return _range_check(field) + lifted


def _range_check(field: PolicyField) -> str:
    is_bounded = field.high < LARGEST[field.sql_type]
    span = f"between {field.low} and {field.high}" if is_bounded else f">= {field.low}"
    return f"{field.name} {span}"


def effective(default: str = "s") -> str:
    """Return the policy of the channel c: its own values, or those of the queue's default policy."""
    return ",\n".join(_effective(field, default) for field in FIELDS)


def _effective(field: PolicyField, default: str) -> str:
    if field.is_flag:
        return f"c.{field.name}"
    values = f"c.{field.name}, {default}.{field.name}"
    value = (
        f"nullif(coalesce({values}), {LIFTED})"
        if field.can_be_lifted
        else f"coalesce({values}, {_literal(field.default)})"
    )
    return f"{value} as {field.name}"


def sources() -> str:
    """Return where each value of the effective policy comes from."""
    return ",\n".join(f"'{field.name}',\n{_source(field)}" for field in DEFAULT_FIELDS)


def _source(field: PolicyField) -> str:
    lifted = f"when c.{field.name} = {LIFTED} then 'lifted' " if field.can_be_lifted else ""
    return (
        f"  case {lifted}when c.{field.name} is not null then 'own'\n"
        f"    when s.{field.name} is not null then 'default' else 'unset' end"
    )


def default_assignments() -> str:
    """Return the default policy as the arguments of jsonb_build_object."""
    return textwrap.fill(", ".join(f"'{field.name}', s.{field.name}" for field in DEFAULT_FIELDS), 112)


def view_columns() -> str:
    """Return the columns as a view selects them."""
    return textwrap.fill(", ".join(f"c.{field.name}" for field in FIELDS), 116)


def unset() -> str:
    """Return the values of a channel that has no row yet, in the order of the columns."""
    return ", ".join(_literal(field.default) if field.is_flag else "null" for field in FIELDS)


def reference() -> str:
    """Return the table of the reference page."""
    rows = [f"| `{field.name}` | {_range(field)} | {_default(field)} | {field.meaning} |" for field in FIELDS]
    return "\n".join(["| name | range | default | means |", "|---|---|---|---|", *rows])


def _range(field: PolicyField) -> str:
    if field.is_flag:
        return "true, false"
    is_bounded = field.high < LARGEST[field.sql_type]
    return f"{field.low:,} to {field.high:,}" if is_bounded else f"{field.low:,} or more"


def _default(field: PolicyField) -> str:
    return "none" if field.default is None else _literal(field.default)


def view_block(name: str) -> str:
    """Return a block of the view channel_status, which the function channel_show repeats.

    The view cannot call it: it would run with the rights of whoever reads the view.
    """
    text = (SQL / "views" / "channel_status.sql").read_text(encoding="utf-8")
    block = re.search(rf"^ *-- {name}: .*\n((?:.*\n)*?) *-- end of {name}\b", text, re.MULTILINE)
    assert block is not None, name
    return textwrap.dedent(block[1]).rstrip("\n")


def _literal(value: int | None) -> str:
    return "null" if value is None else str(value).lower()


TARGETS: Mapping[Path, Blocks] = {
    SQL / "tables" / "channel.sql": {"policy columns": columns},
    SQL / "tables" / "setting.sql": {"policy columns": default_columns},
    SQL / "functions" / "turn_read.sql": {"effective policy": lambda: effective("p_default")},
    SQL / "functions" / "turn_allocate.sql": {"effective policy": effective},
    SQL / "functions" / "channel_due.sql": {"effective policy": effective},
    SQL / "functions" / "queue_set.sql": {"default policy": default_assignments},
    SQL / "views" / "channel_status.sql": {
        "policy columns": view_columns,
        "effective policy": effective,
        "policy sources": sources,
        "unset policy": unset,
    },
    SQL / "functions" / "channel_show.sql": {
        "policy columns": view_columns,
        "effective policy": effective,
        "policy sources": sources,
        "unset policy": unset,
        "channel figures": lambda: view_block("channel figures"),
        "channel joins": lambda: view_block("channel joins"),
    },
    ROOT / "docs" / "reference" / "settings.md": {"policy reference": reference},
}


def fill_blocks(text: str, blocks: Blocks) -> str:
    """Return a file's text with its blocks filled in; raise ValueError unless each occurs exactly once."""
    for name, write in blocks.items():
        block = re.compile(
            rf"^( *)(\S+ {name}: written by .*\n)(?:.*\n)*?( *\S+ end of {name}\b)",
            re.MULTILINE,
        )
        if len(block.findall(text)) != 1:
            raise ValueError(f"the file must contain exactly one block '{name}'")
        indent, begin, end = block.findall(text)[0]
        body = textwrap.indent(write() + "\n", indent)
        text = block.sub(lambda _, whole=indent + begin + body + end: whole, text)  # type: ignore[misc]
    return text


def main(arguments: list[str] | None = None, targets: Mapping[Path, Blocks] = TARGETS) -> int:
    parser = argparse.ArgumentParser(description="Generate SQL and reference from a channel's policy.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is out of date")
    is_check = parser.parse_args(arguments).check
    is_current = True
    for path, blocks in targets.items():
        present = path.read_text(encoding="utf-8")
        expected = fill_blocks(present, blocks)
        if present == expected:
            continue
        is_current = False
        if is_check:
            print(f"{path.name} differs from model/policy.py; run: make format", file=sys.stderr)
        else:
            path.write_text(expected, encoding="utf-8")
    return 1 if is_check and not is_current else 0


if __name__ == "__main__":
    sys.exit(main())
