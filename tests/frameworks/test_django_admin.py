"""Dead letters and channels in Django's admin, by requests of its test client."""

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


def test_channels_are_listed_in_pages_and_explained(project: Project) -> None:
    script = """
from lonnymq.django import channel_admin
from lonnymq import NewMessage
from django.utils.html import escape
channel_admin.PAGE = 3
CHANNELS = "/admin/lonnymq/channel/"
queue.enqueue_many([NewMessage(channel=name, payload=1) for name in ("acme", "b/1_<b>", "b?&2", "ä", "z")])
queue.channel("acme").set(max_concurrency=7)
queue.channel("z").pause()
client = login("view_channel")
page = client.get(CHANNELS)
assert [one.channel for one in page.context_data["channels"]] == ["acme", "b/1_<b>", "b?&2"]
text = page.content.decode()
assert "<td>7</td>" in text and "b/1_&lt;b&gt;" in text
next_ = text.partition('class="paginator"><a href="')[2].partition('"')[0].replace("&amp;", "&")
assert [one.channel for one in client.get(CHANNELS + next_).context_data["channels"]] == ["tiny", "z", "ä"]
found = client.get(CHANNELS, {"prefix": "b"}).context_data["channels"]
assert [one.channel for one in found] == ["b/1_<b>", "b?&2"]
for one in found:
    link = text.partition(f'">{escape(one.channel)}</a>')[0]
    shown = client.get(link.rpartition('href="')[2])
    assert shown.context_data["title"] == one.channel and "ready" in shown.content.decode(), shown
assert "paused" in client.get(CHANNELS + "z/change/").content.decode()
assert "1 or more" not in text and client.get(CHANNELS + "nobody/change/").status_code == 404
for wrong in ("\\0", "x" * 300):
    for name in ("prefix", "after"):
        page = client.get(CHANNELS, {name: wrong})
        assert page.status_code == 200 and (not page.context_data["channels"] or wrong != "\\0"), wrong
assert client.get(CHANNELS + "_00/change/").status_code == 404
for path in ("add/", "z/delete/", "z/history/"):
    assert client.get(CHANNELS + path).status_code in (302, 403), path
assert client.post(CHANNELS, {"action": "delete_selected", "_selected_action": "z"}).status_code == 200
assert queue.channel("z").status()
stranger = login("view_deadletter")
for path in ("", "z/change/"):
    assert stranger.get(CHANNELS + path).status_code == 403
assert Client().get(CHANNELS).status_code == 302
"""
    run(project, script)
