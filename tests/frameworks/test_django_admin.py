"""Dead letters in Django's admin, by requests of its test client."""

from collections.abc import Callable
from pathlib import Path

import pytest

import lonnymq
from tests.frameworks.test_django import SETTINGS, Project

ADMIN_SETTINGS = """
INSTALLED_APPS += ["django.contrib.admin", "django.contrib.sessions", "django.contrib.messages"]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True, "OPTIONS": {
    "context_processors": [
        "django.template.context_processors.request",
        "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]}}]
ROOT_URLCONF = "project.urls"
ALLOWED_HOSTS = ["testserver"]
STATIC_URL = "static/"
LONNYMQ = {"schema": 'odd "schema'}
"""
URLS = """
from django.contrib import admin
from django.urls import path
urlpatterns = [path("admin/", admin.site.urls)]
"""
PRELUDE = """
from django.contrib.auth.models import Permission, User
from django.test import Client
from lonnymq.django import get_queue
from lonnymq.django.models import DeadLetter

queue = get_queue()
LIST = "/admin/lonnymq/deadletter/"

def login(*permissions):
    user = User.objects.create(username=f"user {User.objects.count()}", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client

def act(client, action, *ids, **more):
    data = {"action": action, "_selected_action": ids, **more}
    return client.post(LIST, data, follow=True)

ids = sorted(DeadLetter.objects.values_list("pk", flat=True))
"""


@pytest.fixture
def project(database: Callable[..., str], tmp_path: Path) -> Project:
    """A project whose queue has three dead letters."""
    dsn = database(is_empty=True)
    made = Project(tmp_path, dsn)
    made.write("project/settings.py", SETTINGS + ADMIN_SETTINGS)
    made.write("project/urls.py", URLS)
    made.run("migrate")
    assert "No changes" in made.run("makemigrations", "--check", "--dry-run")
    with lonnymq.Queue(dsn, schema='odd "schema') as queue:
        for tenant in ("acme", "tiny", "acme"):
            queue.enqueue(tenant, 1)
            for message in queue.dequeue():
                message.bury(error="Traceback:\n  ...\nValueError: <b>broken</b>")
    return made


def run(project: Project, code: str) -> None:
    assert project.shell(PRELUDE + code + "\nprint('done')\n").strip().endswith("done")


def test_dead_letters_are_listed_searched_and_shown(project: Project) -> None:
    script = """
client = login("view_deadletter")
page = client.get(LIST).content.decode()
assert page.count("ValueError: &lt;b&gt;broken&lt;/b&gt;") == 3, page
assert client.get(LIST + "?q=tiny").content.decode().count("ValueError") == 1
assert "Traceback" in client.get(f"{LIST}{ids[0]}/change/").content.decode()
assert "redrive" not in page and "delete_selected" not in page
"""
    run(project, script)


def test_dead_letters_are_redriven_and_purged(project: Project) -> None:
    script = """
client = login("view_deadletter", "redrive_deadletter", "delete_deadletter")
assert "Redriven: 2" in act(client, "redrive", *ids[:2]).content.decode()
assert queue.status().waiting == 2
assert "Are you sure" in act(client, "delete_selected", ids[2]).content.decode()
assert DeadLetter.objects.count() == 1
act(client, "delete_selected", ids[2], post="yes")
assert DeadLetter.objects.count() == 0 and queue.status().waiting == 2
"""
    run(project, script)


def test_a_user_without_permission_changes_nothing(project: Project) -> None:
    script = """
viewer, stranger = login("view_deadletter"), login()
for client in (viewer, stranger):
    for action in ("redrive", "delete_selected"):
        act(client, action, *ids, post="yes")
    assert client.post(f"{LIST}{ids[0]}/delete/", {"post": "yes"}).status_code == 403
assert stranger.get(LIST).status_code == 403
assert viewer.get(LIST + "add/").status_code == 403
assert DeadLetter.objects.count() == 3
"""
    run(project, script)
