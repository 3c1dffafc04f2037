"""Message: what has become of it, its attempts, its contents; cancel, run now, redrive, purge."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starlette.responses import Response

from lonnymq import formatting
from lonnymq.calls.argument import instant
from lonnymq.dashboard.form import Form
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.selection import encode_instant, seen_at
from lonnymq.dashboard.view import View
from lonnymq.model import DeadLetter, LiveMessage, MessageReport, MessageStatus, RecordedAttempts

# Of contents, this much is shown.
PREVIEW_BYTES = 65_536
# Earlier times are priorities.
FIRST_TIME_MS = 86_400_000


@dataclass(frozen=True)
class Event:
    """Something that happened to a message, or will."""

    at: datetime | None
    title: str
    kind: str = ""
    detail: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Facts:
    """What is known of a message: it is live, or a dead letter, or its status was kept, or nothing."""

    id: int
    live: LiveMessage | None
    dead: DeadLetter | None
    report: MessageReport
    recorded: RecordedAttempts

    @property
    def status(self) -> str:
        if self.live:
            return self.live.status
        return MessageStatus.BURIED if self.dead else self.report.status

    @property
    def found(self) -> LiveMessage | DeadLetter | None:
        return self.live or self.dead

    @property
    def is_known(self) -> bool:
        return self.status != MessageStatus.UNKNOWN or bool(self.recorded.attempts)


async def show(view: View) -> Response:
    id_ = parse_id(view.arguments["id"])
    facts = await _facts(view, id_)
    return view.render(
        "message.html",
        200 if facts.is_known else 404,
        facts=facts,
        events=_timeline(facts),
        timing=timing,
        seen=encode_instant(facts.dead.buried_at + timedelta(milliseconds=1)) if facts.dead else "",
        content_text=formatting.content_text,
        preview_bytes=PREVIEW_BYTES,
    )


async def act(view: View, form: Form) -> Response:
    id_ = parse_id(view.arguments["id"])
    verb = form.text("action")
    if verb in ("cancel", "purge"):
        form.require_typed(str(id_))
    queue = view.operator
    match verb:
        case "cancel":
            async with view.act("message_cancel", str(id_)) as action:
                action.outcomes += await queue.cancel([id_], connection=action.connection)
        case "run_now":
            async with view.act("message_run_now", str(id_)) as action:
                action.outcomes += await queue.run_now([id_], connection=action.connection)
        case "redrive":
            async with view.act("dead_redrive", str(id_)) as action:
                action.outcomes += await queue.dead().redrive(
                    [id_], before=seen_at(form), connection=action.connection
                )
        case "purge":
            async with view.act("dead_purge", str(id_)) as action:
                action.outcomes += await queue.dead().purge(
                    [id_], before=seen_at(form), connection=action.connection
                )
        case _:
            raise Refused(400, "There is no such action", "Nothing was changed.")
    kind, message = ANSWERS[action.outcomes[0]]
    return view.back_to(view.href(f"/messages/{id_}"), message, kind)


ANSWERS = {
    "cancelled": (
        "done",
        "The message is cancelled. If a worker holds it, the worker is told at its next heartbeat.",
    ),
    "due": ("done", "The message is due now. It runs when it is its channel's turn."),
    "redriven": ("done", "The message waits in its channel again, with no attempts spent."),
    "purged": ("done", "The dead letter is deleted."),
    "leased": ("failed", "A worker has the message already. Nothing was changed."),
    "duplicate": ("failed", "A live message has the same key, so this one stays a dead letter."),
    "dropped": ("failed", "The channel is full, so this one stays a dead letter."),
    "busy": ("failed", "Another transaction has the message locked. Nothing was changed: try again."),
    "unknown": (
        "failed",
        "The message is no longer there, or has changed since: reload the page. Nothing was changed.",
    ),
}


def parse_id(text: str) -> int:
    """Return the id of a message in an address."""
    if re.fullmatch(r"[0-9]{1,19}", text) is None or int(text) >= 2**63:
        raise Refused(404, "There is no such page", "The id of a message is a whole number.")
    return int(text)


def timing(message: LiveMessage) -> str:
    """Return for how long it is leased, when it is due, or for how long it has waited."""
    at = datetime.now(UTC)
    if message.unlock_at is not None:
        left_s = (message.unlock_at - at).total_seconds()
        lease = f"{formatting.duration(left_s)} left" if left_s >= 0 else "lease expired"
        return f"by {message.worker or 'an unnamed worker'}, {lease}"
    due_s = message.dequeue_at / 1000
    if message.status is MessageStatus.SCHEDULED:
        return f"due in {formatting.duration(max(0.0, due_s - at.timestamp()))}"
    waited_s = max(0.0, at.timestamp() - max(due_s, message.created_at.timestamp()))
    priority = f", priority {-message.dequeue_at}" if message.dequeue_at < 0 else ""
    return f"for {formatting.duration(waited_s)}{priority}"


async def _facts(view: View, id_: int) -> Facts:
    sees_contents = view.visitor.may_act
    queue = view.operator if sees_contents else view.reader
    preview = PREVIEW_BYTES if sees_contents else 0
    live = await queue.show(id_, preview_bytes=preview)
    dead = None if live else await queue.dead().show(id_, preview_bytes=preview)
    report = await queue.status_of(id_, has_result=sees_contents)
    return Facts(id_, live, dead, report, await view.reader.attempts(id_))


def _timeline(facts: Facts) -> list[Event]:
    """Return what happened, the latest first."""
    events = []
    if live := facts.live:
        if live.status is MessageStatus.LEASED:
            detail = f"by {live.worker or 'an unnamed worker'}, until {formatting.timestamp(live.unlock_at)}"
            events.append(Event(live.leased_at, f"Attempt {live.attempts} is running", "leased", detail))
        elif live.dequeue_at >= FIRST_TIME_MS:
            title = "Due" if live.status is MessageStatus.SCHEDULED else "Waits since"
            events.append(Event(_instant(live.dequeue_at), title, "waiting"))
    elif facts.dead is None and facts.report.status in (MessageStatus.COMPLETED, MessageStatus.CANCELLED):
        events.append(Event(facts.report.at, str(facts.report.status).capitalize(), str(facts.report.status)))
    elif facts.dead:
        events.append(Event(facts.dead.buried_at, "Buried", "buried", "it is a dead letter"))
    for one in facts.recorded.attempts:
        parts = [f"by {one.worker}" if one.worker else "", _duration(one.leased_at, one.ended_at)]
        title = f"Attempt {one.attempt}: {one.outcome}" if one.leased_at else one.outcome.capitalize()
        detail = ", ".join(part for part in parts if part)
        events.append(Event(one.ended_at, title, one.outcome, detail, one.error))
    if facts.found:
        events.append(Event(facts.found.created_at, "Created"))
    return events


def _duration(start: datetime | None, end: datetime) -> str:
    return "" if start is None else f"after {formatting.duration(max(0.0, (end - start).total_seconds()))}"


def _instant(milliseconds: int) -> datetime | None:
    try:
        return instant(milliseconds)
    except OverflowError:
        return None
