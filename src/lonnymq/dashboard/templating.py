"""Templates: they escape every value, and format numbers, times and names."""

import hashlib
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from lonnymq import charts, formatting
from lonnymq.calls import argument
from lonnymq.dashboard import drawing
from lonnymq.dashboard.assets import asset_path
from lonnymq.dashboard.routes import NAVIGATION
from lonnymq.texts import escape_hidden, truncate

MAX_NAME = 60
# The last instant that Python can show.
LAST_MS = 253_402_300_799_999
# Shown where there is no value.
NOTHING = "\u2013"


def make_templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("lonnymq.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        name=show_name,
        text=show_text,
        slug=slug,
        sentence=lambda value: value[:1].upper() + value[1:],
        count=show_count,
        exact=lambda value: NOTHING if value is None else f"{value:,}",
        seconds=lambda value: NOTHING if value is None else formatting.duration(value),
        milliseconds=lambda value: NOTHING if value is None else formatting.duration(value / 1000),
        rate=show_rate,
        percent=lambda value: NOTHING if value is None else charts.draw.format_percent(value),
        size=formatting.byte_size,
        moment=show_moment,
        last_line=lambda error: formatting.last_line(error) or "",
        age=show_age,
        due=show_due,
    )
    environment.globals.update(
        navigation=NAVIGATION, asset=asset_path, drawing=drawing, rate_limit=formatting.rate_limit, now=now
    )
    return environment


def now() -> datetime:
    return datetime.now(UTC)


def show_name(value: str, most: int = MAX_NAME) -> Markup:
    """Return a name from outside: short, isolated from the direction of its neighbours, nothing invisible."""
    return Markup("<bdi>{}</bdi>").format(escape_hidden(truncate(value, most), keep=""))


def show_text(value: str, most: int = 10_000) -> str:
    """Return a longer text from outside, such as an error."""
    return escape_hidden(truncate(value, most))


def slug(value: str) -> str:
    """Return what stands for a name in the id of an element."""
    return hashlib.sha256(value.encode()).hexdigest()[:12]


def show_count(value: float | None) -> Markup:
    """Return a count of at most five characters, with the exact one as its tip."""
    if value is None:
        return Markup(NOTHING)
    short, exact = charts.draw.format_count(value), f"{value:,}"
    return escape(exact) if short == exact else Markup('<span title="{}">{}</span>').format(exact, short)


def show_rate(per_second: float | None) -> str:
    if per_second is None:
        return NOTHING
    return f"{per_second:.1f}/s" if 0 < per_second < 10 else f"{charts.draw.format_count(per_second)}/s"


def show_moment(at: datetime | None) -> Markup:
    """Return an instant in UTC."""
    if at is None:
        return Markup(NOTHING)
    at = at.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC")


def show_age(at: datetime | None) -> Markup:
    """Return how long ago an instant was, or how soon it will be, with the instant as its tip."""
    if at is None:
        return Markup(NOTHING)
    seconds = (now() - at).total_seconds()
    text = f"{formatting.duration(seconds)} ago" if seconds >= 0 else f"in {formatting.duration(-seconds)}"
    exact: Any = f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), exact, text)


def show_due(dequeue_at: int) -> Markup:
    """Return when a message is due; a time long before the queue existed is a priority."""
    if 0 <= dequeue_at <= LAST_MS:
        return show_age(argument.instant(dequeue_at))
    at = formatting.timestamp_ms(dequeue_at) if dequeue_at > 0 else "priority"
    return Markup('<span title="{}">{}</span>').format(dequeue_at, at)
