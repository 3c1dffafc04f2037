"""The queue in a project of Django, each of whose commands is a process of its own."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

import lonnymq
from tests.forked import ForkedProgram
from tests.worker.workers import TIMEOUT_S, eventually

MANAGE = """
import os, sys
if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.management import execute_from_command_line
    execute_from_command_line(sys.argv)
"""
SETTINGS = """
import os
from psycopg.conninfo import conninfo_to_dict

options = conninfo_to_dict(os.environ["TEST_DSN"])
POSTGRES = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": options["dbname"],
    "USER": options["user"],
    "PASSWORD": options.get("password", ""),
    "HOST": options["host"],
    "PORT": options.get("port", ""),
    # The first two are Django's own, the last one is libpq's.
    "OPTIONS": {"isolation_level": 2, "server_side_binding": False, "application_name": "shop"},
}
DATABASES = {"default": POSTGRES}
SECRET_KEY = "test"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "lonnymq.django", "shop"]
"""
MODELS = """
from django.db import models

class Order(models.Model):
    item = models.TextField()
    receipt = models.TextField(default="")
"""
MIGRATION = """
from django.db import migrations, models

class Migration(migrations.Migration):
    dependencies = [("lonnymq", "0001_install")]
    operations = [
        migrations.CreateModel("Order", [
            ("id", models.AutoField(
                auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ("item", models.TextField()),
            ("receipt", models.TextField(default="")),
        ]),
    ]
"""
JOBS = """
import lonnymq
from django.db import connection
from lonnymq.django import get_queue
from shop.models import Order

app = lonnymq.App(get_queue())

def pid():
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return cursor.fetchone()[0]

@app.task
def send(order: int):
    Order.objects.filter(id=order).update(receipt=f"sent by {pid()}")

@app.task
async def send_async(order: int):
    await Order.objects.filter(id=order).aupdate(receipt="sent by async")

def handle(message):
    send.function(message.payload)
"""


class Project:
    """A project of Django in a directory."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self.folder = folder
        self.environment = {**os.environ, "TEST_DSN": dsn, "PYTHONPATH": ""}
        for name, text in {
            "manage.py": MANAGE,
            "project/__init__.py": "",
            "project/settings.py": SETTINGS,
            "shop/__init__.py": "",
            "shop/models.py": MODELS,
            "shop/jobs.py": JOBS,
            "shop/migrations/__init__.py": "",
            "shop/migrations/0001_initial.py": MIGRATION,
        }.items():
            self.write(name, text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def configure(self, text: str) -> None:
        self.write("project/settings.py", SETTINGS + text)

    def run(self, *arguments: str, is_ok: bool = True) -> str:
        """Run a command of manage.py to its end; return what it printed."""
        output = self.folder / "output"
        output.write_text("")
        command = self._command(*arguments, output=output)
        try:
            assert (command.wait(TIMEOUT_S) == 0) is is_ok, output.read_text()
        finally:
            command.kill()
        return output.read_text()

    def shell(self, code: str) -> str:
        return self.run("shell", "-c", code)

    @contextmanager
    def worker(self, *arguments: str) -> Iterator[Path]:
        """Run a worker until the block ends; it must end with 0 after SIGTERM. Yields its log."""
        log = self.folder / "worker.log"
        log.write_text("")
        process = self._command("lonnymq_work", *arguments, output=log)
        try:
            yield log
            assert process.poll() is None, log.read_text()
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0, log.read_text()
        finally:
            process.kill()
            process.wait()

    def _command(self, *arguments: str, output: Path) -> ForkedProgram:
        return ForkedProgram("manage", *arguments, output=output, cwd=self.folder, env=self.environment)


@pytest.fixture
def empty(database: Callable[..., str]) -> str:
    return database(is_empty=True)


@pytest.fixture
def project(empty: str, tmp_path: Path) -> Project:
    return Project(tmp_path, empty)


def state(dsn: str, schema: str = "lonnymq") -> lonnymq.SchemaState:
    with lonnymq.Queue(dsn, schema=schema) as queue:
        return queue.schema_status().state


def fetch(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def test_migrations_install_and_remove_the_queue(project: Project, empty: str) -> None:
    project.run("check")
    project.run("migrate")
    assert state(empty) is lonnymq.SchemaState.CURRENT
    # Neither model nor state differs from the migrations.
    assert "No changes" in project.run("makemigrations", "--check", "--dry-run")
    project.run("migrate", "lonnymq", "zero")
    assert state(empty) is lonnymq.SchemaState.MISSING
    project.run("migrate")
    assert state(empty) is lonnymq.SchemaState.CURRENT


def test_a_migration_that_fails_leaves_no_queue(project: Project, empty: str) -> None:
    broken = """
from django.db import migrations
from lonnymq.django.operations import InstallQueue

class Migration(migrations.Migration):
    operations = [InstallQueue(), migrations.RunSQL("select 1/0")]
"""
    project.configure('MIGRATION_MODULES = {"lonnymq": "project.queue"}\n')
    project.write("project/queue/__init__.py", "")
    project.write("project/queue/0001_install.py", broken)
    assert "division by zero" in project.run("migrate", is_ok=False)
    assert state(empty) is lonnymq.SchemaState.MISSING


def test_sqlmigrate_prints_a_script_that_installs(project: Project, empty: str) -> None:
    script = project.run("sqlmigrate", "lonnymq", "0001")
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(script.encode())
    with lonnymq.Queue(empty) as queue:
        assert queue.schema_status().state is lonnymq.SchemaState.CURRENT
        assert not queue.check()
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(project.run("sqlmigrate", "lonnymq", "0001", "--backwards").encode())
    assert state(empty) is lonnymq.SchemaState.MISSING


def test_migrate_upgrades_an_older_queue_and_loses_nothing(project: Project, empty: str) -> None:
    project.run("migrate")
    with lonnymq.Queue(empty) as queue:
        queue.enqueue("acme", 1)
        with psycopg.connect(empty) as connection:
            connection.execute("comment on table lonnymq.migration is 'lonnymq of another day'")
        assert queue.schema_status().state is lonnymq.SchemaState.OUTDATED
        project.run("migrate")
        assert queue.schema_status().state is lonnymq.SchemaState.CURRENT
        assert [message.payload for message in queue.dequeue()] == [1]


def test_the_queue_may_be_in_another_database_and_schema(project: Project, empty: str) -> None:
    project.configure(
        'DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite"},'
        ' "jobs": POSTGRES}\nLONNYMQ = {"database": "jobs", "schema": "thumb nails"}\n'
    )
    project.run("migrate")
    assert fetch(empty, "select count(*) from pg_namespace where nspname = 'thumb nails'") == [(0,)]
    project.run("migrate", "--database", "jobs")
    assert state(empty, "thumb nails") is lonnymq.SchemaState.CURRENT
    assert state(empty) is lonnymq.SchemaState.MISSING
    # The other way round, the database that has no queue is left alone.
    project.run("migrate", "lonnymq", "zero")
    assert state(empty, "thumb nails") is lonnymq.SchemaState.CURRENT


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("LONNYMQ = []", "must be a dictionary"),
        ('LONNYMQ = {"shema": "x"}', "not 'shema'"),
        ('LONNYMQ = {"schema": "pg_x"}', "pg_x"),
        ('LONNYMQ = {"database": "jobs"}', "no database 'jobs'"),
        ('DATABASES["default"] = {"ENGINE": "django.db.backends.sqlite3"}', "is sqlite"),
    ],
)
def test_a_wrong_setting_is_reported_by_check(project: Project, setting: str, expected: str) -> None:
    project.configure(setting)
    printed = project.run("check", is_ok=False)
    assert "lonnymq.E001" in printed
    assert expected in printed


ENQUEUE = """
from django.db import connection, transaction
from lonnymq.django import get_queue
from shop.jobs import send, send_async
from shop.models import Order

with transaction.atomic():
    for task in (send, send_async):
        task.options(connection=connection).enqueue("acme", Order.objects.create(item="lamp").id)
try:
    with transaction.atomic():
        send.options(connection=connection).enqueue("acme", Order.objects.create(item="chair").id)
        raise ValueError
except ValueError:
    pass
assert get_queue().status().waiting == 2
"""


def test_a_worker_runs_tasks_that_were_committed_with_their_rows(project: Project, empty: str) -> None:
    project.run("migrate")
    project.shell(ENQUEUE)
    with project.worker("shop.jobs", "--concurrency", "2", "--name", "first"):
        eventually(lambda: not fetch(empty, "select from shop_order where receipt = ''"), "receipts")
    with psycopg.connect(empty) as connection:
        receipts = connection.execute("select left(receipt, 7) from shop_order").fetchall()
    assert receipts == [("sent by",)] * 2


def test_several_processes_of_a_worker_load_the_settings(project: Project, empty: str) -> None:
    project.run("migrate")
    project.shell(ENQUEUE)
    with project.worker("shop.jobs:app", "--processes", "2"):
        eventually(lambda: not fetch(empty, "select from shop_order where receipt = ''"), "receipts")


@pytest.mark.parametrize("max_age", [0, None])
def test_connections_are_treated_as_around_requests(
    project: Project, empty: str, max_age: int | None
) -> None:
    project.configure(f'POSTGRES["CONN_MAX_AGE"] = {max_age}\nPOSTGRES["CONN_HEALTH_CHECKS"] = True\n')
    project.run("migrate")
    with psycopg.connect(empty, autocommit=True) as connection, lonnymq.Queue(empty) as queue:

        def handle_one(item: str) -> int:
            """Return the process id of the server's session that the handler used."""
            inserted = connection.execute(
                "insert into shop_order (item, receipt) values (%s, '') returning id", [item]
            ).fetchone()
            assert inserted
            queue.enqueue("acme", inserted[0])
            query = "select receipt from shop_order where id = %s and receipt <> ''"
            row = eventually(lambda: connection.execute(query, inserted).fetchone(), "a receipt")
            eventually(lambda: queue.status().leased == 0, "the acknowledgement")
            return int(row[0].removeprefix("sent by "))

        def is_connected(pid: int) -> bool:
            return bool(connection.execute("select from pg_stat_activity where pid = %s", [pid]).fetchall())

        # One thread, so that the same connection of Django could be used again.
        with project.worker("shop.jobs:handle", "--concurrency", "1"):
            first = handle_one("lamp")
            if max_age == 0:
                eventually(lambda: not is_connected(first), "the end of the session")
                return
            assert is_connected(first)
            assert handle_one("chair") == first
            connection.execute("select pg_terminate_backend(%s, 10000)", [first])
            # Not an attempt is lost on a broken connection.
            assert handle_one("bed") != first
            assert not fetch(empty, "select from lonnymq.message where attempts > 1")


def test_a_reloading_worker_restarts_after_a_change(project: Project, empty: str) -> None:
    project.run("migrate")
    project.write("shop/jobs.py", JOBS.replace("sent by", "first by"))
    with project.worker("shop.jobs", "--reload") as log:
        project.shell(ENQUEUE)
        eventually(lambda: not fetch(empty, "select from shop_order where receipt = ''"), "receipts")
        project.write("shop/jobs.py", JOBS)
        eventually(lambda: "restarting" in log.read_text(), "a restart")
        project.shell(ENQUEUE.replace(".status().waiting == 2", ""))
        eventually(lambda: len(fetch(empty, "select from shop_order where receipt like 'sent by%'")) == 2)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("shop.nowhere", "there is no module 'shop.nowhere'"),
        ("shop.models", "shop.models has 0 apps"),
        ("shop.jobs:nothing", "has no attribute 'nothing'"),
        ("shop.jobs:__name__", "must be an App"),
        ("shop.jobs:pid", "takes one argument, the message"),
    ],
)
def test_a_wrong_target_is_an_error_of_the_command(project: Project, target: str, expected: str) -> None:
    printed = project.run("lonnymq_work", target, is_ok=False)
    assert printed.startswith("CommandError: ")
    assert expected in printed


def test_a_worker_refuses_wrong_options_and_a_missing_queue(project: Project) -> None:
    assert "processes must be" in project.run("lonnymq_work", "shop.jobs", "--processes", "0", is_ok=False)
    assert "there is no queue" in project.run("lonnymq_work", "shop.jobs", is_ok=False)
