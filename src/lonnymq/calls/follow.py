"""Following history: up to where to read next, in which slices, and which rows are done."""

from lonnymq.calls.statement import Call, Rows, Statement, call, function, nothing
from lonnymq.model import HistoryPosition, HistorySlice

FOLLOW = function(
    "history_follow",
    "origin, xid, id, after_xid, after_id",
    p_reader="text",
    p_origin="text",
    p_xid="bigint",
    p_id="bigint",
    p_is_latest="boolean",
    p_max_rows="bigint",
    p_before_xid="bigint",
)
SLICES = function(
    "history_slices",
    "xid, id, rows",
    p_reader="text",
    p_origin="text",
    p_xid="bigint",
    p_id="bigint",
    p_end_xid="bigint",
    p_end_id="bigint",
    p_rows="bigint",
)
DONE = function("history_done", p_reader="text", p_xid="bigint", p_id="bigint")


def follow(
    reader: str,
    origin: str | None,
    start: HistoryPosition | None,
    is_latest: bool,
    max_rows: int | None,
    before_xid: int | None,
) -> Call[tuple[str, HistoryPosition, HistoryPosition | None]]:
    """Return the origin, and the positions to read from and to (None: there is nothing new)."""

    def decode(rows: Rows) -> tuple[str, HistoryPosition, HistoryPosition | None]:
        found, xid, id_, after_xid, after_id = rows[0]
        end = None if xid is None else HistoryPosition(xid, id_)
        return found, HistoryPosition(after_xid, after_id), end

    return call(FOLLOW, reader, origin, *_parts(start), is_latest, max_rows, before_xid, decode=decode)


def slices(
    reader: str | None,
    origin: str | None,
    start: HistoryPosition | None,
    end: HistoryPosition | None,
    rows_each: int,
) -> Call[list[HistorySlice]]:
    return call(
        SLICES,
        reader,
        origin,
        *_parts(start),
        *_parts(end),
        rows_each,
        decode=lambda rows: [HistorySlice(HistoryPosition(xid, id_), count) for xid, id_, count in rows],
    )


def done(reader: str, position: HistoryPosition) -> Call[None]:
    return call(DONE, reader, position.xid, position.id, decode=nothing)


def rows(columns: str, start: HistoryPosition, end: HistoryPosition) -> Statement:
    """Read a slice. The positions are part of the text, because COPY takes no parameters."""
    return Statement(
        "history",
        f"select {columns} from {{schema}}.history h"
        f" where (h.xid, h.id) > ({int(start.xid)}, {int(start.id)})"
        f" and (h.xid, h.id) <= ({int(end.xid)}, {int(end.id)})",
    )


def _parts(position: HistoryPosition | None) -> tuple[int | None, int | None]:
    return (None, None) if position is None else (position.xid, position.id)
