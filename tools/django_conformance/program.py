"""Runs Django's tests of task backends against ours, in a Python that has this version of Django.

Arguments: the folder with Django's tests, and the connection string of an empty database.
"""

import sys
import unittest
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import django
from django.conf import settings
from django.core.management import call_command
from psycopg.conninfo import conninfo_to_dict

MODULES = ("test_dummy_backend", "test_immediate_backend", "test_tasks", "test_custom_backend")
DUMMY = "tasks.test_dummy_backend.DummyBackendTestCase"
IMMEDIATE = "tasks.test_immediate_backend.ImmediateBackendTestCase"
TASKS = "tasks.test_tasks.TaskTestCase"
# Why each test that fails does not apply; docs/howto/django.md repeats it.
DOES_NOT_APPLY = {
    "calls a blocking method in async code, which no backend with a database allows": {
        f"{DUMMY}.test_get_missing_result",
        f"{TASKS}.test_get_missing_result",
        f"{TASKS}.test_refresh_result",
    },
    "changes a result in the memory of the dummy backend": {
        f"{DUMMY}.test_refresh_result",
        f"{DUMMY}.test_refresh_result_async",
    },
    "expects that results and run_after are not supported, but they are": {
        f"{IMMEDIATE}.test_cannot_get_result",
        f"{IMMEDIATE}.test_cannot_pass_run_after",
        f"{IMMEDIATE}.test_cannot_refresh_result",
    },
    "expects that the task runs in the caller's process and transaction": {
        f"{IMMEDIATE}.test_throws_keyboard_interrupt",
        "tasks.test_immediate_backend.ImmediateBackendTransactionTestCase"
        ".test_doesnt_wait_until_transaction_commit_by_default",
    },
    "sets a priority below zero, or one beside run_after, which the backend refuses": {
        f"{TASKS}.test_chained_using",
        f"{TASKS}.test_invalid_priority",
    },
}


def main(tests: str, dsn: str) -> int:
    """Run the tests; return 0 if exactly those fail that do not apply."""
    configure(dsn)
    sys.path.insert(0, tests)
    use_our_backends()
    suite = unittest.TestSuite()
    for module in MODULES:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(import_module(f"tasks.{module}")))
    for test in each(suite):
        # Django's backends use no database, so their tests forbid it.
        type(test).databases = {"default"}
    result = unittest.TextTestRunner(stream=sys.stdout).run(suite)
    failed = {name_of(test) for test, _ in [*result.failures, *result.errors]}
    expected = set().union(*DOES_NOT_APPLY.values())
    for reason, names in DOES_NOT_APPLY.items():
        print(f"{len(names)} tests do not apply: {reason}")
    for name in sorted(failed - expected):
        print(f"FAILED: {name}")
    for name in sorted(expected - failed):
        print(f"passed, although it is listed as not applicable: {name}")
    passed = result.testsRun - len(failed)
    print(
        f"Django {django.__version__}: {result.testsRun} tests, {passed} passed, {len(expected)} do not apply"
    )
    return int(failed != expected)


def each(suite: unittest.TestSuite) -> Iterator[Any]:
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def name_of(test: Any) -> str:
    """Return the name of a test, or that of a part of it."""
    return str(getattr(test, "test_case", test).id())


def configure(dsn: str) -> None:
    options = conninfo_to_dict(dsn)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": options["dbname"],
        "USER": options["user"],
        "PASSWORD": options.get("password", ""),
        "HOST": options["host"],
        "PORT": options.get("port", ""),
    }
    settings.configure(
        DATABASES={"default": database}, INSTALLED_APPS=["lonnymq.django"], USE_TZ=True, SECRET_KEY="test"
    )
    django.setup()
    call_command("migrate", verbosity=0)


def use_our_backends() -> None:
    """Let the names of Django's backends, in its tests and their settings, mean ours."""
    from tools.django_conformance.backends import RunningBackend, StoringBackend

    vars(import_module("django.tasks.backends.dummy"))["DummyBackend"] = StoringBackend
    vars(import_module("django.tasks.backends.immediate"))["ImmediateBackend"] = RunningBackend


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
