"""`lonnymq serve` in a process of its own, beside a worker that does the work."""

import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from select import select
from typing import Any

import httpx2
import pytest

from lonnymq import ChannelPolicy, Queue
from lonnymq.cli import serve_connections
from lonnymq.dashboard import asgi_app
from tests.cli.conftest import DEADLINE_S, Run, Start, lonnymq, start
from tests.dashboard.conftest import OpenClient, port_of, run_server, token_of
from tests.worker.workers import eventually

__all__ = ["lonnymq", "start"]
APP = """
import os
import lonnymq

app = lonnymq.App(lonnymq.Queue(os.environ["LONNYMQ_DSN"]))

@app.task()
def note(word: str) -> None:
    with open("notes.txt", "a") as notes:
        notes.write(word + "\\n")
"""


def note(word: str) -> dict[str, Any]:
    return {"task": "note", "arguments": {"word": word}}


@pytest.fixture
def address(start: Start) -> Iterator[str]:
    """The address of `lonnymq serve`, which ends with 0 when it is asked to stop."""
    process = start("serve", "--port", "0", "--environment", "test")
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"(http://127\.0\.0\.1:\d+)/", line)
    assert found is not None, line
    yield found[1]
    process.send_signal(signal.SIGTERM)
    assert process.wait(DEADLINE_S) == 0


def test_a_tenant_that_is_paused_here_is_not_served_by_workers(
    address: str, start: Start, queue: Queue, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    notes = tmp_path / "notes.txt"
    start("work", "shop:app", cwd=tmp_path)
    with httpx2.Client(base_url=address, timeout=DEADLINE_S) as browser:

        def act(action: str) -> None:
            token = token_of(browser.get("/channels/acme").text)
            answer = browser.post("/channels/acme", data={"token": token, "action": action})
            assert answer.status_code == 303

        act("pause")
        for channel in ("acme", "other"):
            queue.enqueue(channel, note(channel))
        eventually(lambda: notes.exists() and "other" in notes.read_text())
        for _ in range(5):
            queue.enqueue("other", note("other"))
        eventually(lambda: notes.read_text().count("other") == 6)
        assert "acme" not in notes.read_text()
        assert "The channel is paused" in browser.get("/channels/acme").text
        eventually(lambda: "busy, of 1 process" in browser.get("/").text)
        act("resume")
        eventually(lambda: "acme" in notes.read_text())


def test_a_policy_is_changed_where_the_user_changed_it(client: OpenClient, queue: Queue) -> None:
    channel = queue.channel("acme")
    channel.set(max_concurrency=5, weight=2)
    browser = client()
    page = browser.get("/channels/acme").text
    shown = dict(re.findall(r'name="was_(\w+)" value="(\d*)"', page))
    assert {name: value for name, value in shown.items() if value} == {"max_concurrency": "5", "weight": "2"}
    form = {f"was_{name}": value for name, value in shown.items()} | shown
    form |= {"token": token_of(page), "action": "set", "max_concurrency": "", "release_interval_ms": "1,000"}
    # Somebody else changes another field meanwhile.
    channel.set(weight=7)
    assert browser.post("/channels/acme", data=form).status_code == 303
    status = channel.status()
    assert status is not None
    assert status.policy == ChannelPolicy(release_interval_ms=1000, weight=7)
    (record,) = queue.audit.page().items
    assert record.arguments == {"max_concurrency": None, "release_interval_ms": 1000}
    # The queue's default policy is shown where the channel has no value of its own, and can be lifted.
    queue.set(default_policy={"max_concurrency": 9, "max_attempts": 3})
    page = browser.get("/channels/acme").text
    assert "9, by default" in page
    lifted = {
        **form,
        "max_concurrency": "",
        "was_max_concurrency": "",
        "max_attempts": "None",
        "was_max_attempts": "",
    }
    lifted["release_interval_ms"] = lifted["was_release_interval_ms"] = ""
    assert browser.post("/channels/acme", data=lifted).status_code == 303
    status = channel.status()
    assert status is not None
    assert (status.policy.max_concurrency, status.policy.max_attempts) == (9, None)
    assert status.policy_sources["max_attempts"] == "lifted"
    assert 'value="none"' in browser.get("/channels/acme").text
    for bad in ("x", "1.5", "0", "99999999999", "-1", "²", "9" * 30):
        answer = browser.post("/channels/acme", data={**form, "max_concurrency": bad})
        assert answer.status_code == 400, bad
    assert channel.status() == status
    assert len(queue.audit.page().items) == 2


def test_it_does_not_start_unprotected_or_with_mistakes(
    lonnymq: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases: list[tuple[list[str], dict[str, str], str]] = [
        (["--host", "0.0.0.0"], {}, "needs authentication"),
        (["--host", "::"], {}, "needs authentication"),
        (["--host", "192.168.1.1", "--read-only"], {}, "needs authentication"),
        (["--host", "queue.example.com"], {}, "needs authentication"),
        (["--proxy-header", "X-User"], {}, "at least one network"),
        (["--proxy-network", "10.0.0.1/8"], {}, "networks such as 10.0.0.0/8"),
        (["--proxy-header", "X-User"], {"LONNYMQ_DASHBOARD_PASSWORD": "long enough"}, "exclude one another"),
        ([], {"LONNYMQ_DASHBOARD_PASSWORD": "short"}, "8 characters or more"),
        (["--users-file", "nothing.txt"], {}, "No such file"),
        (["--users-file", "users.txt"], {}, "line 2 of users.txt"),
        (["--colour", "pink"], {}, "colour must be one of"),
        (["--allow-host", "http://x"], {}, "without scheme"),
    ]
    monkeypatch.chdir(tmp_path)
    Path("users.txt").write_text("olga:operator:long enough\nrita:admin:long enough\n")
    for options, environment, error in cases:
        result = lonnymq("serve", "--port", "0", *options, **environment)
        assert result.code == 2
        assert error in result.error_text


def test_passwords_open_it_to_the_network(start: Start, queue: Queue, tmp_path: Path) -> None:
    (tmp_path / "users.txt").write_text("olga:operator:pass: with colon\n\nrita:reader:battery staple\n")
    process = start(
        *("serve", "--port", "0", "--host", "0.0.0.0", "--users-file", "users.txt", "--root-path", "/queue/"),
        *("--allow-host", "queue.example.com"),
        cwd=tmp_path,
    )
    assert process.stdout is not None
    found = re.search(r":(\d+)/queue/", process.stdout.readline())
    assert found is not None
    with httpx2.Client(base_url=f"http://127.0.0.1:{found[1]}", timeout=DEADLINE_S) as browser:
        assert browser.get("/").status_code == 401
        page = browser.get("/", auth=("olga", "pass: with colon"), headers={"host": "queue.example.com"})
        assert page.status_code == 200
        assert 'href="/queue/channels"' in page.text
        # The proxy removes the prefix.
        assert browser.get("/channels", auth=("rita", "battery staple")).status_code == 200


def test_slow_clients_do_not_keep_others_out(dsn: str, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_connections, "MAX_REQUEST_S", 10.0)
    monkeypatch.setattr(serve_connections, "MAX_CONNECTIONS", 9)
    config = serve_connections.make_config(asgi_app(dsn, access="operator"), "")
    config.port = 0
    with run_server(config) as server, ExitStack() as opened:
        address = f"http://127.0.0.1:{port_of(server)}"

        def connect(text: bytes) -> socket.socket:
            client = opened.enter_context(socket.create_connection(("127.0.0.1", port_of(server))))
            client.sendall(text)
            return client

        file = b"GET /static/htmx.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
        form = b"POST /channels/acme HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
        slow = {
            "send nothing": [connect(b"") for _ in range(2)],
            "send their headers slowly": [connect(form) for _ in range(2)],
            "send their form slowly": [connect(form + b"\r\na=") for _ in range(2)],
            "do not read": [connect(file * 500) for _ in range(2)],
        }
        # With one connection more, a request that the server has not read yet would be refused, and closed.
        for client in slow["do not read"]:
            assert select([client], [], [], DEADLINE_S)[0]
        # They have all connections.
        assert httpx2.get(address).status_code == 503

        def is_served() -> bool:
            time.sleep(0.2)
            for client in slow["send their headers slowly"] + slow["send their form slowly"]:
                with suppress(OSError):
                    client.send(b"a")
            return httpx2.get(address, timeout=DEADLINE_S).status_code == 200

        eventually(is_served)
        eventually(lambda: not server.server_state.connections, "an end of all of them")
