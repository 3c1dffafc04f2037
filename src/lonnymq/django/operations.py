"""What migrations do with the queue."""

from typing import Any

from django.db.migrations.operations.base import Operation

from lonnymq.django.configuration import get_queue, read_configuration
from lonnymq.schema import sql_text


class InstallQueue(Operation):
    """Install the queue in the transaction of the migration; reversed, drop it with all its messages."""

    reduces_to_sql = True
    reversible = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The queue has no models that migrations would know."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        configuration = read_configuration()
        if schema_editor.connection.alias != configuration.database:
            return
        if schema_editor.collect_sql:
            schema_editor.execute(sql_text(configuration.schema, within_transaction=True), params=None)
        else:
            get_queue().install(connection=schema_editor.connection)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        configuration = read_configuration()
        if schema_editor.connection.alias != configuration.database:
            return
        if schema_editor.collect_sql:
            quoted = schema_editor.quote_name(configuration.schema)
            schema_editor.execute(f"drop schema {quoted} cascade", params=None)
        else:
            get_queue().uninstall(connection=schema_editor.connection)

    def describe(self) -> str:
        return "Install the queue"
