"""Who may see and do what; requests from elsewhere; what a page may contain."""

import html
import re
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from lonnymq import InvalidArgument, Queue
from lonnymq.dashboard import (
    Access,
    DashboardSettings,
    PasswordAccess,
    ProxyAccess,
    User,
    Visitor,
    asgi_app,
)
from tests.dashboard.conftest import HOSTILE, OpenClient, token_of

FORM = {"content-type": "application/x-www-form-urlencoded"}
OWN = {"origin": "http://localhost:8090", "sec-fetch-site": "same-origin"}


def is_paused(queue: Queue, channel: str = "acme") -> bool:
    status = queue.channel(channel).status()
    return status is not None and status.policy.is_paused


def test_a_form_of_the_page_pauses_a_channel_and_says_so(client: OpenClient, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    browser = client()
    token = token_of(browser.get("/channels/acme").text)
    answer = browser.post("/channels/acme", data={"token": token, "action": "pause"}, headers=OWN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/channels/acme")
    assert is_paused(queue)
    (record,) = queue.audit.page().items
    assert (record.actor, record.verb, record.subject) == ("olga", "channel_pause", "acme")
    assert "The channel is paused" in browser.get("/channels/acme").text
    # Once only.
    assert "The channel is paused. Leased" not in browser.get("/channels/acme").text


def test_a_form_from_elsewhere_changes_nothing(client: OpenClient, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    browser = client()
    token = token_of(browser.get("/channels/acme").text)
    without_token = [{}, {"token": ""}, {"token": "0" * 64}, {"token": "é"}, {"token": token[:-1]}]
    # With the right token, as if it had leaked.
    from_elsewhere = [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "localhost:8090"},
        {"origin": "http://localhost:8090.evil.example"},
        {"origin": "http://localhost:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ]
    forms = [(fields, OWN) for fields in without_token] + [({"token": token}, one) for one in from_elsewhere]
    for fields, headers in forms:
        answer = browser.post("/channels/acme", data={**fields, "action": "pause"}, headers=headers)
        assert answer.status_code == 403, (fields, headers)
        assert not is_paused(queue)


def test_the_token_of_another_browser_or_user_is_refused(client: OpenClient, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    browser = client(access=lambda request: Visitor(request.headers["x-user"], Access.OPERATOR))

    def pause(user: str, token: str) -> int:
        data = {"token": token, "action": "pause"}
        return browser.post("/channels/acme", data=data, headers={"x-user": user}).status_code

    token = token_of(browser.get("/channels/acme", headers={"x-user": "a"}).text)
    assert pause("b", token) == 403
    browser.cookies.clear()
    assert pause("a", token) == 403
    browser.get("/channels/acme", headers={"x-user": "a"})
    assert pause("a", token) == 403
    browser.cookies.set("lonnymq_session", "x" * 43)
    assert pause("a", token) == 403
    assert not is_paused(queue)


def test_another_host_name_is_refused_and_sees_nothing(client: OpenClient, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    browser = client()
    hosts = ("evil.example", "localhost.evil.example", "localhost:80@evil.example", "", "127.0.0.1.nip.io")
    for host in (*hosts, "LOCALHOST.", "[::1"):
        answer = browser.get("/channels/acme", headers={"host": host})
        assert (answer.status_code, "acme" in answer.text) == (421, False), host


def test_allowed_host_names_are_served(client: OpenClient) -> None:
    browser = client(hosts=("localhost", "127.0.0.1", "[::1]", "*.queue.example"))
    for host in ("localhost", "LOCALHOST:8090", "127.0.0.1:1", "[::1]:8090", "a.queue.example"):
        assert browser.get("/", headers={"host": host}).status_code == 200, host
    assert browser.get("/", headers={"host": "queue.example"}).status_code == 421
    # They end like a name that is allowed, but are none.
    for host in ("[x.queue.example", "a@b.queue.example", "a/b.queue.example"):
        assert browser.get("/", headers={"host": host}).status_code == 421, host


def test_every_answer_carries_the_security_headers(client: OpenClient) -> None:
    browser = client(access=lambda request: request.headers.get("x-role", "operator"))
    answers = [
        browser.get("/"),
        browser.get("/nothing"),
        browser.get("/static/style.css"),
        browser.get("/", headers={"x-role": "none"}),
        browser.get("/", headers={"host": "evil.example"}),
        browser.post("/", data={}),
    ]
    assert [one.status_code for one in answers] == [200, 404, 200, 403, 421, 405]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
    cookie = answers[0].headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


def test_hostile_names_are_shown_and_harm_nothing(client: OpenClient, queue: Queue) -> None:
    for name in HOSTILE:
        queue.enqueue(name, 1)
    browser = client()
    pages = [
        browser.get(path) for path in ("/", "/channels", "/channels?order=messages", "/channels?order=name")
    ]
    for page in pages:
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "\u202e" not in page.text
    links = set(_channel_links(pages[3].text))
    assert len(links) == len(HOSTILE)
    for link in links:
        page = browser.get(link)
        assert page.status_code == 200, link
        token = token_of(page.text)
        action = _form_action(page.text)
        answer = browser.post(action, data={"token": token, "action": "pause"}, headers=OWN)
        assert answer.status_code == 303, link
        assert browser.get(answer.headers["location"]).status_code == 200
    assert all(is_paused(queue, name) for name in HOSTILE)
    for name in HOSTILE:
        found = browser.get("/channels", params={"prefix": name})
        assert len(_channel_links(found.text)) >= 1, name


def _channel_links(page: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(r'class="channel"[^>]* href="([^"]*)"', page)]


def _form_action(page: str) -> str:
    found = re.search(r'<form method="post" action="([^"]*)"', page)
    assert found is not None
    return html.unescape(found[1])


def test_bad_input_is_answered_with_what_is_wrong(client: OpenClient, queue: Queue) -> None:
    cases: list[tuple[str, str, dict[str, Any], int]] = [
        ("GET", "/channels?prefix=" + "x" * 256, {}, 400),
        ("GET", "/channels?prefix=%00", {}, 400),
        ("GET", "/channels?order=evil", {}, 400),
        ("GET", "/channels?prefix=" + "x" * 9000, {}, 414),
        ("GET", "/" + "x" * 5000, {}, 414),
        ("GET", "/channels/%00", {}, 400),
        ("GET", "/channels/" + "x" * 256, {}, 400),
        ("GET", "/channels/%ff", {}, 404),
        ("GET", "/channel", {}, 404),
        ("GET", "/static/../app.py", {}, 404),
        ("GET", "/static/%2e%2e/app.py", {}, 404),
        ("PUT", "/", {}, 405),
        ("POST", "/static/style.css", {}, 405),
        ("DELETE", "/channels/acme", {}, 405),
        ("POST", "/channels/acme", {"json": {"action": "pause"}}, 415),
        ("POST", "/channels/acme", {"data": {"action": "x" * 70_000}}, 413),
        ("POST", "/channels/acme", {"content": "&a" * 3_000, "headers": FORM}, 413),
        ("POST", "/channels/acme", {"data": {"action": "pause"}}, 403),
    ]
    browser = client()
    for method, path, options, status in cases:
        answer = browser.request(method, path, **options)
        assert answer.status_code == status, (method, path[:100])
        assert "Traceback" not in answer.text
    assert browser.put("/channels/acme").headers["allow"] == "GET, HEAD, POST"
    assert browser.post("/static/style.css").headers["allow"] == "GET, HEAD"
    token = token_of(browser.get("/channels/acme").text)
    for weight in ("--5", "-", "1.5", "٣", "9" * 20, "\0", "none"):
        form = {"token": token, "action": "set", "weight": weight}
        answer = browser.post("/channels/acme", data=form, headers=OWN)
        assert answer.status_code == 400, weight


def test_a_mounted_dashboard_links_to_itself(dsn: str, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    dashboard = asgi_app(dsn, access="operator")
    with TestClient(
        Starlette(routes=[Mount("/ops/queue", dashboard)]), base_url="http://localhost"
    ) as browser:
        page = browser.get("/ops/queue/").text
        links = [one for one in re.findall(r'(?:href|src|action|hx-get)="([^"]*)"', page) if one != "#main"]
        assert links
        assert [one for one in links if not one.startswith("/ops/queue/")] == []
        assert {browser.get(link.replace("&amp;", "&")).status_code for link in links} == {200}
        page = browser.get("/ops/queue/channels/acme").text
        answer = browser.post(
            "/ops/queue/channels/acme",
            data={"token": token_of(page), "action": "pause"},
            follow_redirects=False,
        )
        assert answer.headers["location"] == "/ops/queue/channels/acme"
        assert "Path=/ops/queue" in answer.headers["set-cookie"]
        assert browser.portal is not None
        browser.portal.call(dashboard.close)
    assert is_paused(queue)


def test_settings_that_make_no_sense_are_refused(dsn: str) -> None:
    for settings in (
        {"colour": "pink"},
        {"hosts": ("https://x",)},
        {"hosts": ("x:80",)},
        {"secret": b"short"},
        {"sample_s": 0},
        {"statement_timeout_s": 0},
        {"environment": "x" * 41},
    ):
        with pytest.raises(InvalidArgument):
            DashboardSettings(**settings)
    for access in ("admin", None, 5):
        with pytest.raises((InvalidArgument, TypeError)):
            asgi_app(dsn, access=access)
    for make in (
        lambda: User("a:b", "long enough"),
        lambda: User("a", "short"),
        lambda: PasswordAccess([]),
        lambda: ProxyAccess("X-User", []),
        lambda: ProxyAccess("X-User", ["10.0.0.0/99"]),
    ):
        with pytest.raises(InvalidArgument):
            make()
