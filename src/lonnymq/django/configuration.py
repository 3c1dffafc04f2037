"""The setting LONNYMQ, and the client of the queue that it describes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.connection import ConnectionDoesNotExist
from psycopg import pq
from psycopg.conninfo import make_conninfo

from lonnymq.client.sync import Queue
from lonnymq.connections.target import DEFAULT_SCHEMA
from lonnymq.errors import InvalidArgument
from lonnymq.schema import require_schema

# Django's names of what libpq needs to connect.
CONNECTION_SETTINGS = {
    "NAME": "dbname",
    "USER": "user",
    "PASSWORD": "password",
    "HOST": "host",
    "PORT": "port",
}


@dataclass(frozen=True)
class Configuration:
    """Where the queue is: the alias of a database in DATABASES, and the schema in it."""

    database: str = "default"
    schema: str = DEFAULT_SCHEMA

    @property
    def connection(self) -> Any:
        """Django's connection of the current thread to the database of the queue."""
        return connections[self.database]


def read_configuration() -> Configuration:
    """Return the setting LONNYMQ; raise ImproperlyConfigured if it is wrong."""
    given = getattr(settings, "LONNYMQ", {})
    if not isinstance(given, Mapping):
        raise ImproperlyConfigured(f"LONNYMQ must be a dictionary, not {given!r}")
    if unknown := sorted(set(map(str, given)) - {"database", "schema"}):
        raise ImproperlyConfigured(f"LONNYMQ may have the keys 'database' and 'schema', not {unknown[0]!r}")
    configuration = Configuration(**given)
    try:
        require_schema(configuration.schema)
        vendor = configuration.connection.vendor
    except InvalidArgument as error:
        raise ImproperlyConfigured(f"LONNYMQ: {error}") from error
    except ConnectionDoesNotExist:
        raise ImproperlyConfigured(
            f"LONNYMQ: there is no database {configuration.database!r} in DATABASES"
        ) from None
    if vendor != "postgresql":
        raise ImproperlyConfigured(
            f"LONNYMQ needs a database of PostgreSQL, but {configuration.database!r} is {vendor};"
            ' name another one: LONNYMQ = {"database": "..."}'
        )
    return configuration


def view_name(view: str) -> str:
    """Return the name of a view of the queue, as the `db_table` of a model."""
    # A wrong setting is reported by `manage.py check`, which needs the models.
    given = getattr(settings, "LONNYMQ", {})
    schema = given.get("schema", DEFAULT_SCHEMA) if isinstance(given, Mapping) else DEFAULT_SCHEMA
    quoted = str(schema).replace('"', '""')
    return f'"{quoted}"."{view}"'


def get_queue() -> Queue:
    """Return the queue of this project, the same client at each call.

    Pass `connection=django.db.connection` to its methods to make them part of your transaction. Without
    one, it uses connections of its own.
    """
    configuration = read_configuration()
    return _create_queue(_dsn(configuration.connection.settings_dict), configuration.schema)


@lru_cache(maxsize=8)
def _create_queue(dsn: str, schema: str) -> Queue:
    # Not for good: while tests run, Django uses a database with another name.
    return Queue(dsn, schema=schema)


def _dsn(database: Mapping[str, Any]) -> str:
    """Return the connection string of a database in DATABASES; options of Django alone are left out."""
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()}
    options = {name: value for name, value in database["OPTIONS"].items() if name in known}
    if role := database["OPTIONS"].get("assume_role"):
        escaped = str(role).replace("\\", r"\\").replace(" ", r"\ ")
        options["options"] = f"{options.get('options', '')} -c role={escaped}".strip()
    for name, parameter in CONNECTION_SETTINGS.items():
        if database.get(name):
            options[parameter] = database[name]
    return make_conninfo(**options)
