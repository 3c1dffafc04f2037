"""Tasks and crons that are declared apart from their app."""

from typing import Any

import pytest

from lonnymq import App, InvalidArgument, LonnyError, Queue, TaskRegistry
from lonnymq.testing import run_until_empty

NOBODY = "dbname=nobody"


def test_an_app_processes_the_tasks_of_its_registries(queue: Queue, dsn: str) -> None:
    videos, mails, letters = TaskRegistry(), TaskRegistry(), TaskRegistry()
    seen: list[Any] = []

    @videos.task
    def resize(video: int) -> None:
        seen.append(video)
        send.enqueue("acme", f"resized {video}")

    app = App(dsn)
    app.include(videos, mails)
    mails.include(letters)

    @mails.task(name="mail")
    def send(text: str) -> None:
        seen.append(text)

    @letters.cron("0 3 * * *", channel="acme")
    def remind() -> None: ...

    assert list(app.tasks) == ["resize", "mail", "remind"]
    assert [cron.name for cron in app.crons] == ["remind"]
    assert resize.app is send.app is remind.app is app
    resize.enqueue("acme", 7)
    run_until_empty(app)
    assert seen == [7, "resized 7"]
    app.clients.close()


def test_a_task_without_an_app_cannot_be_enqueued_but_called() -> None:
    registry = TaskRegistry()

    @registry.task
    def double(n: int) -> int:
        return 2 * n

    assert double(2) == 4
    with pytest.raises(LonnyError, match=r"call app\.include\(registry\) first"):
        double.enqueue("acme", 1)


def test_a_registry_that_cannot_be_included_changes_nothing() -> None:
    app, other, registry = App(NOBODY), App(NOBODY), TaskRegistry()

    @app.task
    def taken() -> None: ...

    @registry.task
    def free() -> None: ...

    @registry.task(name="taken")
    def also_taken() -> None: ...

    loose: Any = app
    for refused, match in (
        (registry, "name must be a name that no other task"),
        (other, "registry must be a lonnymq.TaskRegistry"),
        ("shop.tasks", "registry must be a lonnymq.TaskRegistry"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            loose.include(refused)
    assert list(app.tasks) == ["taken"]

    shared = TaskRegistry()
    app.include(shared)
    with pytest.raises(InvalidArgument, match="that no other app or registry includes"):
        other.include(shared)
    with pytest.raises(InvalidArgument, match="that no other app or registry includes"):
        shared.include(shared)
    with pytest.raises(InvalidArgument, match="name must be a name that no other task"):
        shared.task(name="taken")(free.function)
    assert list(shared.tasks) == []


def test_registries_that_would_include_each_other_are_refused() -> None:
    outer, middle, inner = TaskRegistry(), TaskRegistry(), TaskRegistry()
    outer.include(middle)
    middle.include(inner)
    for registry in (outer, middle, inner):
        with pytest.raises(InvalidArgument, match="registry must be"):
            inner.include(registry)

    @inner.task
    def work() -> None: ...

    app = App(NOBODY)
    app.include(outer)
    assert list(app.tasks) == ["work"]
    assert work.app is app


class Shop:
    def resize(self, video: int) -> None: ...

    @classmethod
    def cut(cls, video: int) -> None: ...

    @staticmethod
    def join(video: int) -> None: ...


def test_a_method_is_a_task_only_without_its_instance() -> None:
    app = App(NOBODY)
    wrong: Any
    for wrong in (Shop.resize, vars(Shop)["cut"]):
        with pytest.raises(InvalidArgument, match="task must be a function: a method has an instance"):
            app.task(wrong)
    for task in (app.task(Shop().resize), app.task(Shop.cut), app.task(Shop.join)):
        assert task.message("acme", 7).payload["arguments"] == {"video": 7}
