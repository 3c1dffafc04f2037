"""The queue in migrations of Alembic, over each driver that it can borrow."""

import io
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.config import Config

import lonnymq

ENV = """
import os
from alembic import context
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Column, Integer, MetaData, NullPool, Table, create_engine
from lonnymq.alembic import ignore_schema

target_metadata = MetaData()
Table("orders", target_metadata, Column("id", Integer, primary_key=True))
options = {"target_metadata": target_metadata, "include_schemas": True, "include_name": ignore_schema()}
if context.is_offline_mode():
    context.configure(dialect_name="postgresql", **options)
    with context.begin_transaction():
        context.run_migrations()
else:
    arguments = conninfo_to_dict(os.environ["TEST_DSN"])
    driver = os.environ["TEST_DRIVER"]
    engine = create_engine(f"postgresql+{driver}://", connect_args=arguments, poolclass=NullPool)
    with engine.connect() as connection:
        context.configure(connection=connection, **options)
        with context.begin_transaction():
            context.run_migrations()
"""
MIGRATION = """
from alembic import op
import sqlalchemy as sa
from lonnymq import alembic as lonnymq_alembic

revision = "1"
down_revision = None

def upgrade():
    lonnymq_alembic.install(op)
    op.create_table("orders", sa.Column("id", sa.Integer, primary_key=True))

def downgrade():
    lonnymq_alembic.uninstall(op)
    op.drop_table("orders")
"""
TEMPLATE = """
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
def upgrade():
    ${upgrades if upgrades else "pass"}
def downgrade():
    ${downgrades if downgrades else "pass"}
"""


@pytest.fixture
def empty(database: Callable[..., str]) -> str:
    return database(is_empty=True)


@pytest.fixture(params=["psycopg", "psycopg2"])
def config(
    request: pytest.FixtureRequest, empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Config:
    versions = tmp_path / "migrations" / "versions"
    versions.mkdir(parents=True)
    (tmp_path / "migrations" / "env.py").write_text(ENV)
    (tmp_path / "migrations" / "script.py.mako").write_text(TEMPLATE)
    (versions / "1_first.py").write_text(MIGRATION)
    monkeypatch.setenv("TEST_DSN", empty)
    monkeypatch.setenv("TEST_DRIVER", request.param)
    config = Config()
    config.set_main_option("script_location", str(tmp_path / "migrations"))
    return config


def test_a_migration_installs_and_removes_the_queue(config: Config, empty: str) -> None:
    command.upgrade(config, "head")
    with lonnymq.Queue(empty) as queue:
        assert queue.schema_status().state is lonnymq.SchemaState.CURRENT
        queue.enqueue("acme", 1)
    command.downgrade(config, "base")
    with lonnymq.Queue(empty) as queue:
        assert queue.schema_status().state is lonnymq.SchemaState.MISSING


def test_a_migration_that_fails_leaves_no_queue(config: Config, empty: str, tmp_path: Path) -> None:
    first = tmp_path / "migrations" / "versions" / "1_first.py"
    first.write_text(MIGRATION.replace(".install(op)", ".install(op)\n    op.execute('select 1/0')", 1))
    with pytest.raises(Exception, match="division by zero"):
        command.upgrade(config, "head")
    with lonnymq.Queue(empty) as queue:
        assert queue.schema_status().state is lonnymq.SchemaState.MISSING
    with psycopg.connect(empty) as connection:
        assert connection.execute("select to_regclass('orders')").fetchone() == (None,)


def test_a_second_migration_upgrades_and_loses_nothing(config: Config, empty: str, tmp_path: Path) -> None:
    command.upgrade(config, "head")
    with lonnymq.Queue(empty) as queue:
        queue.enqueue("acme", 1)
    second = MIGRATION.replace('"1"', '"2"').replace("= None", '= "1"').replace("op.create_table", "#")
    (tmp_path / "migrations" / "versions" / "2_second.py").write_text(second)
    command.upgrade(config, "head")
    with lonnymq.Queue(empty) as queue:
        assert [message.payload for message in queue.dequeue()] == [1]


def test_autogenerate_ignores_the_queue(config: Config, tmp_path: Path) -> None:
    command.upgrade(config, "head")
    command.revision(config, autogenerate=True, rev_id="2")
    [generated] = (tmp_path / "migrations" / "versions").glob("2_*.py")
    assert "op." not in generated.read_text()


def test_an_offline_migration_prints_a_script_that_installs(config: Config, empty: str) -> None:
    config.output_buffer = printed = io.StringIO()
    command.upgrade(config, "head", sql=True)
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(printed.getvalue().encode())
    with lonnymq.Queue(empty) as queue:
        assert queue.schema_status().state is lonnymq.SchemaState.CURRENT
        assert not queue.check()
    with psycopg.connect(empty) as connection:
        # The tables after the queue's are where they belong.
        assert connection.execute("select to_regclass('public.orders')::text").fetchone() == ("orders",)
    printed.truncate(0)
    printed.seek(0)
    command.downgrade(config, "1:base", sql=True)
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute(printed.getvalue().encode())
    with lonnymq.Queue(empty) as queue:
        assert queue.schema_status().state is lonnymq.SchemaState.MISSING
