"""The application that projects add to INSTALLED_APPS."""

from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db.models.signals import post_migrate

from lonnymq.django.configuration import get_queue, read_configuration
from lonnymq.schema import SchemaState


class LonnyMQConfig(AppConfig):
    """Installs the queue with a migration, and upgrades it after the migrations."""

    name = "lonnymq.django"
    label = "lonnymq"
    verbose_name = "LonnyMQ"

    def ready(self) -> None:
        checks.register(check_configuration)
        post_migrate.connect(upgrade, sender=self, dispatch_uid="lonnymq.django.upgrade")


def check_configuration(**options: Any) -> list[checks.CheckMessage]:
    """Report a wrong setting LONNYMQ in `manage.py check`."""
    try:
        read_configuration()
    except ImproperlyConfigured as error:
        return [checks.Error(str(error), id="lonnymq.E001")]
    return []


def upgrade(*, using: str, **options: Any) -> None:
    """Bring an installed queue up to date: in short transactions of its own, while it is in use."""
    configuration = read_configuration()
    if using != configuration.database:
        return
    queue, connection = get_queue(), configuration.connection
    if queue.schema_status(connection=connection).state is SchemaState.OUTDATED:
        # A transaction of the caller may hold locks that other connections would wait for.
        queue.migrate(connection=connection if connection.in_atomic_block else None)
