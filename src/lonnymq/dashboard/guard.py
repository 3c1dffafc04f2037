"""What stands before each page: the host, the size of a request, where a form came from, and headers."""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from lonnymq.dashboard.networks import Networks
from lonnymq.dashboard.refusal import Refused
from lonnymq.dashboard.settings import DashboardSettings

SESSION = "lonnymq_session"
FLASH = "lonnymq_flash"
MAX_QUERY_BYTES = 8_192
MAX_PATH = 4_096
# Sent with every answer. There are no inline scripts or styles, and nothing comes from another host.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: a browser would then hide the origin of our own forms, which require_own_form() checks.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    """Checks requests, and signs the tokens of forms and the messages that are shown after an action."""

    def __init__(self, settings: DashboardSettings) -> None:
        self._settings = settings
        self._proxies = Networks("proxies", settings.proxies)
        self._secret = settings.secret or secrets.token_bytes(32)

    def require_acceptable(self, request: Request) -> None:
        """Refuse long requests, and requests for another host, by which other pages reach a local server."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._settings.allows_host(hosts[0]):
            raise Refused(
                421,
                "This host name is not allowed",
                "Open the dashboard by one of its names. To add one: lonnymq serve --allow-host NAME, or"
                " DashboardSettings(hosts=...).",
            )
        if len(request.scope.get("query_string", b"")) > MAX_QUERY_BYTES:
            raise Refused(414, "The address is too long", "Use shorter filters.")
        if len(request.scope["path"]) > MAX_PATH:
            raise Refused(414, "The address is too long", "")

    def session(self, request: Request) -> tuple[str, bool]:
        """Return the browser's session, and whether it is new. It says nothing about who is logged in."""
        found = request.cookies.get(SESSION, "")
        if len(found) == 43 and found.isascii():
            return found, False
        return secrets.token_urlsafe(32), True

    def token(self, session: str, visitor: str) -> str:
        """Return the token of a visitor's forms: nobody else's fits."""
        return self._sign("form", session, visitor)

    def require_own_form(self, request: Request, visitor: str, token: str) -> None:
        """Refuse a form that was not sent from a page of this dashboard to this visitor."""
        session, is_new = self.session(request)
        is_ours = not is_new and hmac.compare_digest(self.token(session, visitor).encode(), token.encode())
        if not is_ours or not _is_same_origin(request):
            raise Refused(
                403,
                "This form is not valid",
                "It was not sent from a page of this dashboard, or the page is too old. Go back, reload the"
                " page, and try again. Nothing was changed.",
            )

    def cookie_options(self, request: Request) -> dict[str, Any]:
        return {
            "path": request.scope.get("root_path") or "/",
            "httponly": True,
            "samesite": "strict",
            "secure": self._is_encrypted(request),
        }

    def _is_encrypted(self, request: Request) -> bool:
        """Whether the browser uses TLS, which a proxy may end. Only known proxies are asked."""
        said = request.headers.get("x-forwarded-proto")
        if said is not None and self._proxies.include(request):
            # If there are several proxies, the first is the browser's.
            return said.partition(",")[0].strip().lower() == "https"
        return bool(request.scope.get("scheme") == "https")

    def write_flash(self, kind: str, text: str) -> str:
        """Return the value of a cookie with a message for the next page."""
        value = base64.urlsafe_b64encode(json.dumps([kind, text[:500]]).encode()).decode()
        return f"{value}.{self._sign('flash', value)}"

    def read_flash(self, cookie: str) -> tuple[str, str] | None:
        """Return a message for this page, and its kind; None if there is none, or it is not ours."""
        value, _, signature = cookie.partition(".")
        if not hmac.compare_digest(signature.encode(), self._sign("flash", value).encode()):
            return None
        kind, text = json.loads(base64.urlsafe_b64decode(value))
        return str(kind), str(text)

    def _sign(self, *parts: str) -> str:
        text = json.dumps(parts).encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()


def _is_same_origin(request: Request) -> bool:
    """Whether a form came from this host, by the headers that a page cannot change."""
    fetched_from = request.headers.get("sec-fetch-site")
    if fetched_from is not None and fetched_from != "same-origin":
        return False
    origin = request.headers.get("origin")
    if origin is None:
        # Browsers send it with each form; without it, the token is the proof.
        return True
    # The scheme may differ behind a proxy that ends TLS.
    return origin.partition("://")[2].lower() == request.headers["host"].lower()
