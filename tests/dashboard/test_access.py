"""Who may look and who may act: by password, by a proxy, by a function, and by the role in the database."""

import base64
from typing import Any

from starlette.testclient import TestClient

from lonnymq import Queue
from lonnymq.cli.serve_access import allow_local, limit_to_reading
from lonnymq.dashboard import Access, DashboardSettings, PasswordAccess, ProxyAccess, User, asgi_app
from tests.dashboard.conftest import OpenClient, operator, reader, token_of
from tests.dashboard.test_security import OWN, is_paused


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def test_a_broken_access_function_lets_nobody_in(client: OpenClient) -> None:
    def fails(request: Any) -> str:
        raise RuntimeError("the directory is down: password=hunter2")

    for access in (fails, lambda request: "admin", lambda request: None, lambda request: True):
        answer = client(access=access).get("/")
        assert answer.status_code in (500, 400)
        assert "hunter2" not in answer.text
        assert "Overview" not in answer.text


def test_passwords_decide_who_may_act(client: OpenClient, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    access = PasswordAccess([User("olga", "correct horse é"), User("rita", "battery staple", Access.READER)])
    browser = client(access=access)
    for headers in (
        {},
        basic("olga", "wrong"),
        basic("olga", ""),
        basic("", ""),
        basic("rita", "correct horse é"),
        {"authorization": "Basic !!!"},
        {"authorization": "Bearer x"},
        {"authorization": "Basic"},
    ):
        answer = browser.get("/", headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"][:5]) == (401, "Basic")
    page = browser.get("/channels/acme", headers=basic("rita", "battery staple"))
    assert (page.status_code, "<form method" in page.text) == (200, False)
    page = browser.get("/channels/acme", headers=basic("olga", "correct horse é"))
    answer = browser.post(
        "/channels/acme",
        data={"token": token_of(page.text), "action": "pause"},
        headers={**OWN, **basic("olga", "correct horse é")},
    )
    assert answer.status_code == 303
    assert is_paused(queue)


def test_a_user_header_is_believed_only_from_the_proxy(dsn: str) -> None:
    cases: list[tuple[str, list[tuple[str, str]], str]] = [
        ("10.1.2.3", [("x-user", "olga")], "operator"),
        ("10.1.2.3", [("x-user", "eve")], "reader"),
        ("::ffff:10.1.2.3", [("x-user", "eve")], "reader"),
        ("10.1.2.3", [], "none"),
        ("10.1.2.3", [("x-user", "")], "none"),
        ("10.1.2.3", [("x-user", "eve"), ("x-user", "olga")], "none"),
        ("11.1.2.3", [("x-user", "olga")], "none"),
        ("11.1.2.3", [("x-user", "olga"), ("x-forwarded-for", "10.1.2.3")], "none"),
        ("testclient", [("x-user", "olga")], "none"),
    ]
    for number, (address, headers, expected) in enumerate(cases):
        network = ("10.0.0.0/8", "::ffff:10.0.0.0/104")[number % 2]
        app = asgi_app(dsn, access=ProxyAccess("X-User", [network], operators=["olga"]))
        with TestClient(app, base_url="http://localhost", client=(address, 5)) as browser:
            answer = browser.get("/static/icon.svg" if expected == "none" else "/", headers=headers)
        if expected == "none":
            assert answer.status_code == 403
        else:
            assert f'title="{expected}"' in answer.text


def test_cookies_are_secure_if_a_known_proxy_says_that_it_ends_tls(dsn: str) -> None:
    by_proxy = ProxyAccess("X-User", ["10.0.0.0/8"])
    both = DashboardSettings(proxies=("10.0.0.0/8", "fd00::/8"))
    cases: list[tuple[Any, DashboardSettings | None, str, str, str | None, bool]] = [
        (by_proxy, None, "http", "10.1.2.3", "https", True),
        (by_proxy, None, "http", "10.1.2.3", "HTTPS, http", True),
        (by_proxy, None, "http", "10.1.2.3", "http", False),
        (by_proxy, None, "http", "10.1.2.3", None, False),
        ("operator", both, "http", "fd00::1", "https", True),
        ("operator", both, "http", "11.1.2.3", "https", False),
        ("operator", None, "http", "10.1.2.3", "https", False),
        ("operator", None, "https", "11.1.2.3", "http", True),
        # The browser's own connection is not encrypted, though the proxy's is.
        ("operator", both, "https", "10.1.2.3", "http", False),
    ]
    for access, settings, scheme, address, forwarded, expected in cases:
        app = asgi_app(dsn, access=access, settings=settings)
        headers = {"x-user": "olga"} | ({"x-forwarded-proto": forwarded} if forwarded else {})
        with TestClient(app, base_url=f"{scheme}://localhost", client=(address, 5)) as browser:
            cookie = browser.get("/audit", headers=headers).headers["set-cookie"]
        assert ("; Secure" in cookie) == expected, (address, forwarded, cookie)


def test_reading_runs_as_the_readers_role(dsn: str, queue: Queue, connect: Any) -> None:
    queue.enqueue("acme", 1)
    connection = connect()
    role = f"dashboard_reader_{connection.info.backend_pid}"
    connection.execute(f"create role {role} login")
    try:
        queue.grant(role, "reader")
        reading = (
            f"{dsn} options='-c role={role}'" if "://" not in dsn else f"{dsn}&options=-c%20role%3D{role}"
        )
        app = asgi_app(dsn, access=operator, reader=reading)
        with TestClient(app, base_url="http://localhost") as browser:
            for path in (
                "/",
                "/channels",
                "/channels?order=name",
                "/channels?order=messages",
                "/channels/acme",
            ):
                assert browser.get(path).status_code == 200
            connection.execute(f"select lonnymq.queue_revoke('{role}')")
            refused = browser.get("/channels?order=messages")
            assert refused.status_code == 403
            assert "permission denied" in refused.text
    finally:
        connection.execute(f"drop owned by {role}")
        connection.execute(f"drop role {role}")


def test_a_reader_gets_403_and_changes_nothing(client: OpenClient, queue: Queue) -> None:
    queue.enqueue("acme", {"secret": 1})
    roles = {"operator": operator, "reader": reader}
    browser = client(access=lambda request: roles[request.headers.get("x-role", "reader")](request))
    page = browser.get("/channels/acme").text
    assert "<form method" not in page
    answer = browser.post("/channels/acme", data={"action": "pause"}, headers=OWN)
    assert answer.status_code == 403
    # Even with a token of its own.
    rita = browser.app.guard.token(browser.cookies["lonnymq_session"], "rita")  # type: ignore[attr-defined]
    answer = browser.post("/channels/acme", data={"action": "pause", "token": rita}, headers=OWN)
    assert (answer.status_code, "You may look" in answer.text) == (403, True)
    assert not is_paused(queue)


def test_nobody_may_act_on_a_read_only_dashboard(client: OpenClient, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    nobody = PasswordAccess([User("olga", "correct horse")])
    browser = client(access=limit_to_reading(nobody))
    assert browser.get("/").headers["www-authenticate"].startswith("Basic")
    page = browser.get("/channels/acme", headers=basic("olga", "correct horse"))
    assert (page.status_code, "<form method" in page.text) == (200, False)
    browser = client(access=limit_to_reading(allow_local))
    assert browser.post("/channels/acme", data={"action": "pause"}).status_code == 403
    assert not is_paused(queue)
