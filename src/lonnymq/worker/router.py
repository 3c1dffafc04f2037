"""Chooses the handler of a message."""

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lonnymq.errors import invalid
from lonnymq.model.acknowledge import BURY
from lonnymq.worker.handler import Handler, require_handler_function
from lonnymq.worker.verdict import Judge, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

# Its retries apply if `route()` fails, because the reason may be temporary.
UNROUTED = Handler(call=lambda message: None, name="route")


class Router:
    """Has one handler for all messages, or an object with `route(message)`, such as an App."""

    def __init__(self, handler: Any, judge: Judge) -> None:
        self._judge = judge
        self._routing: Any = None
        self._route: Callable[[Any], Handler] | None = None
        self._handler: Handler = UNROUTED
        if isinstance(handler, Handler):
            self._handler = handler
        elif callable(getattr(handler, "route", None)) and not isinstance(handler, type | ModuleType):
            self._routing, self._route = handler, handler.route
        elif callable(handler):
            require_handler_function("handler", handler)
            self._handler = Handler(call=handler)
        else:
            raise invalid("handler", handler, "a function that takes a message, a Handler, or an App")

    @property
    def is_batch(self) -> bool:
        """Whether every slot takes many messages at once."""
        return self._handler.is_batch

    @property
    def names(self) -> list[str]:
        """The names of an app's tasks, or that of the only handler."""
        if self._route is None:
            return [self._handler.name]
        tasks = getattr(self._routing, "tasks", None)
        return [name for name in tasks if isinstance(name, str)] if isinstance(tasks, Mapping) else []

    def admit(self, message: Any) -> Handler | Verdict:
        """Return the handler, or the verdict on a message that must not be processed."""
        handler = self._handler
        if self._route is not None:
            try:
                handler = self._route(message)
                if not isinstance(handler, Handler):
                    raise invalid("the result of route()", handler, "a Handler")
            except Exception as error:  # noqa: BLE001 - no message may break the worker
                return self._judge.verdict(UNROUTED, message.attempt, error, None)
        if handler.max_attempts is not None and message.attempt > handler.max_attempts:
            # Its last attempt was allowed, and ended without an acknowledgement: the process was killed.
            reason = f"{message.attempt - 1} attempts have ended, max_attempts is {handler.max_attempts}"
            return Verdict(BURY, error=reason, handler=handler)
        if 1 in (handler.max_attempts, message.max_attempts) and getattr(message, "suspicion", 0) > 0:
            return Verdict(BURY, error="its only attempt was lost with its worker", handler=handler)
        return handler
