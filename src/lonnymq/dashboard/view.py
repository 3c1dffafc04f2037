"""What a page has at hand: the request, who sent it, the queue, links, templates, and the one way to act."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from lonnymq.client.aio import AsyncQueue
from lonnymq.client.aio.audit import AsyncAuditedAction
from lonnymq.dashboard.access import Visitor
from lonnymq.dashboard.guard import FLASH, SESSION
from lonnymq.dashboard.refusal import Refused
from lonnymq.model import PageCursor
from lonnymq.texts import one_line

if TYPE_CHECKING:
    from lonnymq.dashboard.app import Dashboard

logger = logging.getLogger("lonnymq.dashboard")
FLASH_S = 60


class View:
    """One request, as a page sees it."""

    def __init__(
        self, dashboard: "Dashboard", request: Request, visitor: Visitor, arguments: dict[str, str]
    ) -> None:
        self.dashboard = dashboard
        self.request = request
        self.visitor = visitor
        # The parts of the path that the page's pattern names.
        self.arguments = arguments
        self._session, self._is_new_session = dashboard.guard.session(request)

    @property
    def reader(self) -> AsyncQueue:
        """The queue, for everything that is shown. Its role may be one that sees no contents."""
        return self.dashboard.reader

    @property
    def operator(self) -> AsyncQueue:
        """The queue with the privileges of an operator: for `act()`, and for contents of messages."""
        self.require_operator()
        return self.dashboard.operator

    def require_operator(self) -> None:
        if not self.visitor.may_act:
            raise Refused(
                403, "You may look, but not act", "Nothing was changed. Ask for the role of an operator."
            )

    # Links and filters

    @property
    def root(self) -> str:
        return str(self.request.scope.get("root_path") or "").rstrip("/")

    def href(self, path: str, **query: object) -> str:
        """Return a link to a page; filters that are empty or None are left out."""
        kept = {name: str(value) for name, value in query.items() if value not in (None, "")}
        return self.root + quote(path, safe="/") + (f"?{urlencode(kept)}" if kept else "")

    def has_page(self, path: str) -> bool:
        return self.dashboard.find_page(path) is not None

    def is_in(self, path: str) -> bool:
        """Whether this page is the one of that path, or below it."""
        here = self.dashboard.path_of(self.request)
        return here == path or (path != "/" and here.startswith((f"{path}/", f"{path.removesuffix('s')}/")))

    def channel_href(self, name: str) -> str:
        """Return the link to a channel, whatever its name is."""
        # Browsers and proxies change paths with dots, slashes, backslashes and percent signs.
        if name in (".", "..") or not {"/", "\\", "%"}.isdisjoint(name):
            return self.href("/channel", name=name)
        return f"{self.root}/channels/{quote(name, safe='')}"

    def query(self, name: str, *, high: int = 255) -> str:
        """Return a filter of the address; an empty text if there is none."""
        value = self.request.query_params.get(name, "")
        if len(value) > high or "\0" in value:
            raise Refused(400, f"The filter {name} is not valid", f"At most {high} characters, without NUL.")
        return value

    def cursor(self, name: str = "before") -> PageCursor | None:
        """Return where a page of a long list begins."""
        value = self.query(name)
        try:
            return PageCursor.parse(value) if value else None
        except ValueError:
            raise Refused(400, "The address of this page is not valid", "Begin at the first page.") from None

    # Answers

    def render(self, template: str, status_code: int = 200, **values: Any) -> Response:
        """Return a page. Templates escape every value."""
        cookie = self.request.cookies.get(FLASH)
        guard = self.dashboard.guard
        # Not request.url, which cannot be made of every host that a browser may state.
        query = self.request.scope.get("query_string", b"").decode("latin-1")
        text = self.dashboard.templates.get_template(template).render(
            view=self,
            visitor=self.visitor,
            settings=self.dashboard.settings,
            schema=self.dashboard.operator.schema,
            flash=guard.read_flash(cookie) if cookie else None,
            token=guard.token(self._session, self.visitor.name),
            # Where this page is found again.
            here=self.root + self.path + (f"?{query}" if query else ""),
            **values,
        )
        response = HTMLResponse(text, status_code)
        response.headers["Cache-Control"] = "no-store"
        options = guard.cookie_options(self.request)
        if self._is_new_session:
            response.set_cookie(SESSION, self._session, **options)
        if cookie:
            response.delete_cookie(FLASH, **options)
        return response

    @property
    def path(self) -> str:
        """The path below the dashboard's root, quoted again."""
        return quote(self.dashboard.path_of(self.request), safe="/")

    def back_to(self, href: str, message: str, kind: str = "done") -> Response:
        """Return to a page, which shows a message. `kind` is 'done' or 'failed'."""
        response = RedirectResponse(href, 303)
        guard = self.dashboard.guard
        cookie = guard.write_flash(kind, message)
        response.set_cookie(FLASH, cookie, max_age=FLASH_S, **guard.cookie_options(self.request))
        return response

    # Actions

    @asynccontextmanager
    async def act(
        self, verb: str, subject: str | None = None, arguments: Mapping[str, Any] | None = None
    ) -> AsyncIterator[AsyncAuditedAction]:
        """Run the block in a transaction that also records the action; the only way to change something.

            async with view.act("channel_pause", name) as action:
                await view.operator.channel(name).pause(connection=action.connection)

        `verb` is the name of the queue's call. The form was checked before the page was asked to act.
        """
        actor = self.visitor.name or self.visitor.access.value
        async with self.operator.audit.action(actor, verb, subject, arguments) as action:
            yield action
        logger.info("%s: %s %s", one_line(actor), verb, one_line(subject or ""))
