"""A web page on a queue: `lonnymq serve`, or an ASGI application to mount in your own.

    dashboard = lonnymq.dashboard.asgi_app("postgresql://...", access=lambda request: "reader")
    app = FastAPI()
    app.mount("/queue", dashboard)

Needs the extra `dashboard`.
"""

from lonnymq.dashboard.access import Access, AccessCheck, PasswordAccess, ProxyAccess, User, Visitor
from lonnymq.dashboard.app import Dashboard, asgi_app
from lonnymq.dashboard.settings import COLOURS, DashboardSettings

__all__ = [
    "COLOURS",
    "Access",
    "AccessCheck",
    "Dashboard",
    "DashboardSettings",
    "PasswordAccess",
    "ProxyAccess",
    "User",
    "Visitor",
    "asgi_app",
]
