"""The dashboard as an ASGI application."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Self

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from lonnymq.client.aio import AsyncQueue
from lonnymq.connections.settings import ClientSettings
from lonnymq.dashboard.access import Access, ProxyAccess, Visitor, access_check, visitor_of
from lonnymq.dashboard.assets import ASSETS, asset_response
from lonnymq.dashboard.counting import Counter
from lonnymq.dashboard.form import read_form
from lonnymq.dashboard.guard import HEADERS, Guard
from lonnymq.dashboard.refusal import Refused, refusal_of
from lonnymq.dashboard.routes import find_page
from lonnymq.dashboard.sampler import Sampler
from lonnymq.dashboard.settings import DashboardSettings
from lonnymq.dashboard.templating import make_templates
from lonnymq.dashboard.view import View
from lonnymq.errors import invalid_kind
from lonnymq.texts import one_line

logger = logging.getLogger("lonnymq.dashboard")


def asgi_app(
    queue: str | AsyncQueue = "",
    *,
    access: Any,
    reader: str | AsyncQueue | None = None,
    schema: str | None = None,
    settings: DashboardSettings | None = None,
) -> "Dashboard":
    """Return the dashboard of a queue, to be mounted under any path.

    `access` says who may do what: a function that takes a request and returns "none", "reader", "operator" or
    a `Visitor`, a `PasswordAccess` or `ProxyAccess`, or one of these words for every request. `reader` is the
    queue with another role, which is used for everything except actions and contents of messages.

    Connections are opened with the first request. `async with dashboard:` closes them.
    """
    settings = settings or DashboardSettings()
    if isinstance(access, ProxyAccess):
        settings = replace(settings, proxies=(*settings.proxies, *access.networks))
    check = access_check(access)
    operator = _open(queue, "queue", schema, settings)
    reading = operator if reader is None else _open(reader, "reader", operator.schema, settings)
    owned = [one for one, given in ((operator, queue), (reading, reader)) if isinstance(given, str)]
    return Dashboard(operator, reading, check, settings, owned)


def _open(queue: Any, name: str, schema: str | None, settings: DashboardSettings) -> AsyncQueue:
    if isinstance(queue, AsyncQueue):
        return queue
    if not isinstance(queue, str):
        raise invalid_kind(name, queue, "a connection string or a lonnymq.AsyncQueue")
    client = ClientSettings(
        pool_max_size=4, retry_for_s=3.0, listen=True, statement_timeout_s=settings.statement_timeout_s
    )
    return AsyncQueue(queue, schema=schema, settings=client)


class Dashboard:
    """The dashboard of one queue; see `asgi_app()`."""

    def __init__(
        self,
        operator: AsyncQueue,
        reader: AsyncQueue,
        check: Any,
        settings: DashboardSettings,
        owned: list[AsyncQueue],
    ) -> None:
        self.operator = operator
        self.reader = reader
        self.settings = settings
        self.guard = Guard(settings)
        self.templates = make_templates()
        self.sampler = Sampler(reader, settings)
        self.counter = Counter(reader, settings)
        self._check = check
        self._owned = owned

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop looking at the queue, and close the connections that the dashboard opened."""
        await self.sampler.stop()
        await self.counter.stop()
        for queue in self._owned:
            await queue.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            response = await self._respond(Request(scope, receive))
            response.headers.update(HEADERS)
            await response(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    find_page = staticmethod(find_page)

    def path_of(self, request: Request) -> str:
        """Return the path below the place where the dashboard is mounted."""
        path, root = str(request.scope["path"]), str(request.scope.get("root_path") or "").rstrip("/")
        if root and (path == root or path.startswith(f"{root}/")):
            path = path[len(root) :]
        return path or "/"

    async def _respond(self, request: Request) -> Response:
        visitor = Visitor("", Access.NONE)
        try:
            self.guard.require_acceptable(request)
            visitor = await self._recognize(request)
            if visitor.access is Access.NONE:
                return self._turn_away()
            return await self._open_page(request, visitor)
        except Exception as error:  # noqa: BLE001 - a page must not end a server, nor show what went wrong inside
            return self._explain(error, request, visitor)

    async def _recognize(self, request: Request) -> Visitor:
        try:
            return await visitor_of(self._check, request)
        except Exception as error:
            # Whatever it says, this visitor may not know it.
            logger.exception("the access check failed")
            raise Refused(500, "Something went wrong", "The log of the dashboard says what.") from error

    async def _open_page(self, request: Request, visitor: Visitor) -> Response:
        path = self.path_of(request)
        if path in ASSETS:
            if request.method not in ("GET", "HEAD"):
                raise Refused(405, "This file can only be read", "")
            return asset_response(path, request)
        found = find_page(path)
        if found is None:
            raise Refused(404, "There is no such page", "")
        page, arguments = found
        view = View(self, request, visitor, arguments)
        if request.method in ("GET", "HEAD"):
            async with self._limit_time():
                return await page.show(view)
        if request.method != "POST" or page.act is None:
            raise Refused(405, "This page does not take forms", "")
        form = await read_form(request)
        self.guard.require_own_form(request, visitor.name, form.exact("token"))
        view.require_operator()
        try:
            async with self._limit_time():
                return await page.act(view, form)
        except TimeoutError:
            raise Refused(
                503,
                "The database took too long",
                "Whether the action took effect is not known: look before you repeat it.",
            ) from None

    @asynccontextmanager
    async def _limit_time(self) -> AsyncIterator[None]:
        """Stop waiting for a database that does not answer, and use no connection again that may be dead."""
        try:
            async with asyncio.timeout(self.settings.answer_s):
                yield
        except TimeoutError:
            for queue in {self.operator, self.reader}:
                await queue.caller.source.renew()
            raise

    def _turn_away(self) -> Response:
        challenge = getattr(self._check, "challenge", None)
        if challenge is None:
            return PlainTextResponse("You may not use this dashboard.\n", 403)
        return PlainTextResponse(
            "A user name and a password are needed.\n", 401, {"WWW-Authenticate": challenge}
        )

    def _explain(self, error: Exception, request: Request, visitor: Visitor) -> Response:
        refusal = refusal_of(error)
        if refusal is None:
            logger.error("%s %s failed", request.method, one_line(request.scope["path"]), exc_info=error)
            refusal = Refused(500, "Something went wrong", "The log of the dashboard says what.")
        if visitor.access is Access.NONE:
            return PlainTextResponse(f"{refusal.title}. {refusal.advice}\n", refusal.status)
        view = View(self, request, visitor, {})
        response = view.render("error.html", refusal.status, refusal=refusal)
        if refusal.status == 405:
            found = find_page(self.path_of(request))
            response.headers["Allow"] = "GET, HEAD, POST" if found and found[0].act else "GET, HEAD"
        return response

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
