"""The pages, by their paths. To add one: a module in `pages/`, a template, and a line here."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property

from starlette.responses import Response

from lonnymq.dashboard.form import Form
from lonnymq.dashboard.pages import (
    audit,
    channel,
    channels,
    crons,
    failures,
    message,
    messages,
    overview,
    system,
    workers,
)
from lonnymq.dashboard.view import View

Show = Callable[[View], Awaitable[Response]]
Act = Callable[[View, Form], Awaitable[Response]]


@dataclass(frozen=True)
class Page:
    """A page. `{name}` in its path stands for the rest of the path, whatever it contains.

    `act` is what happens to its forms; the form's token and the visitor's privileges have been checked then.
    """

    path: str
    show: Show
    act: Act | None = None
    # Its title in the navigation, if it is there.
    title: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>.+)", self.path), re.DOTALL)


PAGES = (
    Page("/", overview.show, title="Overview"),
    Page("/channels", channels.show, title="Channels"),
    Page("/channels/{name}", channel.show, channel.act),
    # For names that a path cannot hold.
    Page("/channel", channel.show, channel.act),
    Page("/messages", messages.show, title="Messages"),
    Page("/messages/{id}", message.show, message.act),
    Page("/failures", failures.show, failures.act, title="Failures"),
    Page("/crons", crons.show, crons.act, title="Crons"),
    Page("/workers", workers.show, workers.act, title="Workers"),
    Page("/system", system.show, title="System"),
    Page("/audit", audit.show, title="Audit"),
)
NAVIGATION = tuple(page for page in PAGES if page.title)


def find_page(path: str) -> tuple[Page, dict[str, str]] | None:
    """Return the page of a path, and the parts of the path that its pattern names."""
    for page in PAGES:
        if (found := page.pattern.fullmatch(path)) is not None:
            return page, found.groupdict()
    return None
