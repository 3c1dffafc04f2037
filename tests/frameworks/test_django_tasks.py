"""The backend of django.tasks, before Django 6 through its backport, in a project with a real worker."""

import json
from collections.abc import Callable
from pathlib import Path

import django
import pytest

import lonnymq
from tests.frameworks.test_django import ENQUEUE, SETTINGS, Project, fetch
from tests.worker.workers import eventually

TASKS_SETTINGS = """
import django
INSTALLED_APPS += ["django_tasks"] if django.VERSION < (6,) else []
TASKS = {"default": {"BACKEND": "lonnymq.django.tasks.LonnyMQBackend"},
    "strict": {"BACKEND": "lonnymq.django.tasks.LonnyMQBackend", "QUEUES": ["a"],
        "OPTIONS": {"MAX_ATTEMPTS": 2, "KEEP_RESULT": None}}}
"""
TASKS = """
from MODULE import task
from MODULE.signals import task_finished, task_started
from shop.models import Order

@task
def add(a, b=1):
    return {"sum": a + b}

@task
async def add_async(a):
    await Order.objects.acreate(item="async")
    return a + 1

@task(takes_context=True)
def attempt(context, item):
    Order.objects.create(item=item)
    return [context.attempt, context.task_result.id]

@task
def fail(text):
    raise LookupError(text)

@task(backend="strict", queue_name="a")
def fail_twice():
    raise LookupError("strict")

@task
def unserializable():
    return object()

def plain():
    pass

def record(sender, task_result, signal, **_):
    kind = "started" if signal is task_started else "finished"
    Order.objects.create(item=kind, receipt=f"{task_result.id} {task_result.status} {sender.__name__}")

task_started.connect(record)
task_finished.connect(record)
"""
MODULE = "django_tasks" if django.VERSION < (6,) else "django.tasks"
# What each script begins with.
PRELUDE = """
import asyncio, json
from datetime import timedelta
from django.db import transaction
from django.utils import timezone
from MODULE import TaskResultStatus, default_task_backend, task_backends
from MODULE.exceptions import *
from lonnymq.django.tasks_api import InvalidTask
from shop.models import Order
from shop.tasks import *
"""


@pytest.fixture
def project(database: Callable[..., str], tmp_path: Path) -> Project:
    made = Project(tmp_path, database(is_empty=True))
    made.write("project/settings.py", SETTINGS + TASKS_SETTINGS)
    made.write("shop/tasks.py", TASKS.replace("MODULE", MODULE))
    made.run("migrate")
    return made


def run(project: Project, code: str) -> str:
    """Run a script in the project; return its last line."""
    return project.shell(PRELUDE.replace("MODULE", MODULE) + code).strip().rpartition("\n")[2]


def wait_until_done(project: Project) -> None:
    with lonnymq.Queue(project.environment["TEST_DSN"]) as queue, project.worker("--concurrency", "2"):
        eventually(lambda: queue.status().waiting == queue.status().leased == 0, "an empty queue")


def test_tasks_run_and_their_results_are_found(project: Project) -> None:
    script = """
results = [add.enqueue(1, b=2), asyncio.run(add_async.aenqueue(1)),
    attempt.using(queue_name="acme").enqueue("x"), fail.enqueue("no such\\nlamp"), unserializable.enqueue()]
assert [one.status for one in results] == [TaskResultStatus.READY] * 5
for one in results:
    found = default_task_backend.get_result(one.id)
    assert (found.task, found.args, found.kwargs) == (one.task, one.args, one.kwargs), found
    assert (found.status, found.enqueued_at, found.attempts) == (one.status, one.enqueued_at, 0), found
    one.refresh()
print(json.dumps([one.id for one in results]))
"""
    ids = json.loads(run(project, script))
    wait_until_done(project)
    script = f"""
ids = {ids}
added, added_async, tried, failed, strange = [default_task_backend.get_result(id) for id in ids]
assert added.return_value == {{"sum": 3}}
assert added == add.get_result(ids[0])
assert asyncio.run(add_async.aget_result(ids[1])).return_value == 2
assert tried.return_value == [1, ids[2]]
assert tried.task.queue_name == "acme"
for one in (added, added_async, tried):
    assert one.status == TaskResultStatus.SUCCESSFUL and one.is_finished and one.attempts == 1
    assert one.enqueued_at <= one.started_at <= one.finished_at
assert failed.status == TaskResultStatus.FAILED
assert failed.errors[0].exception_class is LookupError
assert failed.enqueued_at <= failed.started_at == failed.last_attempted_at <= failed.finished_at
assert "no such" in failed.errors[0].traceback and failed.args == ["no such\\nlamp"]
assert strange.errors[0].exception_class is TypeError
try:
    fail.get_result(ids[0])
except TaskResultMismatch:
    print("ok")
"""
    assert run(project, script) == "ok"
    dsn = project.environment["TEST_DSN"]
    recorded = {(kind, text) for kind, text in fetch(dsn, "select item, receipt from shop_order") if text}
    ends = ["SUCCESSFUL"] * 3 + ["FAILED"] * 2
    assert recorded == {("started", f"{id_} RUNNING LonnyMQBackend") for id_ in ids} | {
        ("finished", f"{id_} {end} LonnyMQBackend") for id_, end in zip(ids, ends, strict=True)
    }


def test_a_task_belongs_to_the_transaction(project: Project) -> None:
    script = """
try:
    with transaction.atomic():
        result = add.enqueue(1)
        assert add.get_result(result.id).status == TaskResultStatus.READY
        raise KeyError
except KeyError:
    pass
try:
    add.get_result(result.id)
except TaskResultDoesNotExist:
    print("ok")
"""
    assert run(project, script) == "ok"


def test_tasks_run_later_or_earlier(project: Project) -> None:
    script = """
add.using(run_after=timezone.now() + timedelta(days=1)).enqueue(1)
add.enqueue(2)
add.using(priority=7).enqueue(3)
add.using(priority=100).enqueue(4)
"""
    run(project, script)
    with lonnymq.Queue(project.environment["TEST_DSN"]) as queue:
        assert [one.payload["args"] for one in queue.dequeue(limit=10)] == [[4], [3], [2]]
        assert queue.status().waiting == 1


def test_failed_tasks_are_retried_if_configured(project: Project) -> None:
    id_ = run(project, "print(fail_twice.enqueue().id)")
    with lonnymq.Queue(project.environment["TEST_DSN"]) as queue, project.worker():
        eventually(lambda: queue.dead().show(int(id_)), "a dead letter")
    script = f"""
found = fail_twice.get_result('{id_}')
assert found.enqueued_at <= found.started_at < found.last_attempted_at <= found.finished_at
print(found.status, found.attempts, len(found.errors))
"""
    assert run(project, script) == "FAILED 2 1"


def test_invalid_tasks_and_unknown_results_are_refused(project: Project) -> None:
    script = """
wrong = [
    dict(priority=-1), dict(priority=101), dict(priority=1.5),
    dict(run_after=timezone.now().replace(tzinfo=None)),
    dict(queue_name="x" * 300), dict(backend="strict"), dict(priority=1, run_after=timezone.now()),
]
for one in wrong:
    try:
        add.using(**one)
    except InvalidTask:
        continue
    raise AssertionError(one)
try:
    fields = dict(priority=0, backend="default", queue_name="a", run_after=None)
    task_backends["default"].task_class(func=(lambda: lambda: 1)(), **fields)
    raise AssertionError("a function in a function")
except InvalidTask:
    pass
for unknown in ("", "123", "x", "-1", str(2**70)):
    try:
        default_task_backend.get_result(unknown)
    except TaskResultDoesNotExist:
        continue
    raise AssertionError(unknown)
try:
    add.enqueue(object())
except TypeError:
    print("ok")
"""
    assert run(project, script) == "ok"


def test_a_worker_buries_what_it_cannot_run(project: Project) -> None:
    lost = {"django_task": "shop.tasks.plain", "backend": "default", "queue_name": "a", "priority": 0}
    times = {"enqueued_at": "2026-01-01T00:00:00+00:00", "args": [], "kwargs": {}}
    payloads = [
        {**lost, **times},
        {**lost, **times, "django_task": "shop.nowhere.f"},
        {**lost, "django_task": "shop.tasks.add"},
        {"other": 1},
    ]
    with lonnymq.Queue(project.environment["TEST_DSN"]) as queue:
        for payload in payloads:
            queue.enqueue("acme", payload)
        wait_until_done(project)
        errors = [letter.error or "" for letter in queue.dead().list()]
    expected = ["is not a task", "shop.nowhere", "KeyError", "is not a task of django.tasks"]
    assert all(text in " ".join(errors) for text in expected)
    assert len(errors) == 4


def test_one_worker_runs_tasks_of_both_kinds(project: Project) -> None:
    run(project, ENQUEUE + 'attempt.enqueue("of django")\n')
    dsn = project.environment["TEST_DSN"]
    with project.worker("shop.jobs"):
        query = "select from shop_order where receipt like 'sent by%' or item = 'of django'"
        eventually(lambda: len(fetch(dsn, query)) == 3, "three tasks")


def test_wrong_options_are_reported(project: Project) -> None:
    backend = "lonnymq.django.tasks.LonnyMQBackend"
    for options in ({"X": 1}, {"MAX_ATTEMPTS": 0}, {"KEEP_RESULT": -1}):
        tasks = {"default": {"BACKEND": backend, "OPTIONS": options}}
        project.write("project/settings.py", f"{SETTINGS}{TASKS_SETTINGS}TASKS = {tasks!r}\n")
        assert "OPTIONS in TASKS['default']" in project.run("shell", "-c", "import shop.tasks", is_ok=False)
