"""Connections of Django without a project; a separate module, because a test loads it without psycopg."""

from typing import Any


def django_connection_of(options: dict[str, Any], **settings: Any) -> Any:
    """Return a new connection of Django with its own alias, as `django.db.connections` would make it."""
    import django
    from django.conf import settings as django_settings
    from django.db import connections

    if not django_settings.configured:
        django_settings.configure(DATABASES={}, INSTALLED_APPS=[], USE_TZ=True)
        django.setup()
    alias = str(options["dbname"])
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": alias,
        "USER": options["user"],
        "PASSWORD": options.get("password", ""),
        "HOST": options["host"],
        "PORT": options.get("port", ""),
        **settings,
    }
    connections.settings.update(connections.configure_settings({"default": {}, alias: database}))
    if hasattr(connections._connections, alias):
        del connections[alias]
    return connections[alias]
