"""The dashboard behind a real nginx, which ends TLS and knows the users, by the file in deploy/nginx."""

import html
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.routing import Mount

from lonnymq import Queue
from lonnymq.dashboard import ProxyAccess, asgi_app
from tests.browser import Browser
from tests.cli.conftest import DEADLINE_S, Start, start
from tests.dashboard.conftest import HOSTILE, Serve, token_of
from tests.dashboard.test_pages import assert_clean
from tests.worker.workers import eventually

__all__ = ["start"]
LOCATION = Path(__file__).resolve().parents[2] / "deploy" / "nginx" / "dashboard.conf"
PASS = "proxy_pass http://127.0.0.1:8090/;"
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
OPENSSL = shutil.which("openssl")
USERS = {"olga": "correct horse", "rita": "battery staple"}
TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
CONFIGURATION = """\
daemon off;
master_process off;
pid {home}/pid;
events {{}}
http {{
    access_log off;
    {temporary}
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {home}/certificate.pem;
        ssl_certificate_key {home}/key.pem;
        include {home}/dashboard.conf;
    }}
}}
"""

pytestmark = pytest.mark.skipif(
    NGINX is None or OPENSSL is None, reason="needs nginx and openssl: apt-get install nginx-light openssl"
)


@contextmanager
def nginx(upstream: str) -> Iterator[str]:
    """Run an nginx of its own, and yield its address; `upstream` is the statement that passes requests on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="lonnymq-nginx-") as name:
        home = Path(name)
        home.joinpath("dashboard.conf").write_text(LOCATION.read_text().replace(PASS, upstream))
        home.joinpath("lonnymq.htpasswd").write_text(
            "".join(f"{user}:{{PLAIN}}{password}\n" for user, password in USERS.items())
        )
        temporary = " ".join(f"{kind}_temp_path {home}/{kind};" for kind in TEMPORARY)
        configuration = home / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(home=home, port=port, temporary=temporary))
        make_certificate(home)
        hand_over(home)
        command = [str(NGINX), "-p", str(home), "-c", str(configuration), "-e", str(home / "log")]
        process = subprocess.Popen(command, user="nobody" if os.geteuid() == 0 else None)
        try:
            eventually(lambda: is_open(port) or process.poll() is not None)
            assert process.poll() is None, home.joinpath("log").read_text()
            yield f"https://localhost:{port}"
        finally:
            process.terminate()
            process.wait()


def make_certificate(home: Path) -> None:
    subprocess.run(
        [
            *(str(OPENSSL), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-keyout", str(home / "key.pem"), "-out", str(home / "certificate.pem")),
        ],
        check=True,
        capture_output=True,
    )


def hand_over(home: Path) -> None:
    """Let nginx, which runs as another user if this is root, read and write its folder."""
    if os.geteuid() == 0:
        for path in (home, *home.iterdir()):
            shutil.chown(path, "nobody")


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def served(start: Start) -> Iterator[str]:
    """`lonnymq serve`, which is told the path that nginx removes."""
    process = start(
        *("serve", "--port", "0", "--root-path", "/queue", "--proxy-header", "X-Forwarded-User"),
        *("--proxy-network", "127.0.0.1/32", "--proxy-operator", "olga"),
    )
    assert process.stdout is not None
    found = re.search(r":(\d+)/queue/", process.stdout.readline())
    assert found is not None
    with nginx(f"proxy_pass http://127.0.0.1:{found[1]}/;") as address:
        yield address


@pytest.fixture
def mounted(dsn: str, serve: Serve) -> Iterator[str]:
    """An application that has mounted the dashboard under the path that nginx keeps."""
    access = ProxyAccess("X-Forwarded-User", ["127.0.0.0/8"], operators=["olga"])
    application = Starlette(routes=[Mount("/queue", asgi_app(dsn, access=access))])
    with nginx(f"proxy_pass {serve(application, proxy_headers=False)};") as address:
        yield address


def client(address: str, user: str, **headers: str) -> httpx2.Client:
    return httpx2.Client(
        base_url=address, auth=(user, USERS[user]), headers=headers, verify=False, timeout=DEADLINE_S
    )


def test_the_file_passes_requests_on_in_one_place() -> None:
    assert LOCATION.read_text().count(PASS) == 1


@pytest.mark.parametrize("kind", ["served", "mounted"])
def test_nginx_says_who_acts_and_that_the_browser_uses_tls(
    kind: str, request: pytest.FixtureRequest, queue: Queue
) -> None:
    address = request.getfixturevalue(kind)
    for name in (*HOSTILE, "acme"):
        queue.enqueue(name, 1)
    # Its own header does not make her an operator.
    with client(address, "rita", **{"x-forwarded-user": "olga", "x-forwarded-proto": "http"}) as rita:
        page = rita.get("/queue/channels/acme")
        assert (page.status_code, 'title="reader"' in page.text) == (200, True)
        assert "<form method" not in page.text
        assert "; Secure" in page.headers["set-cookie"]
        assert "Path=/queue" in page.headers["set-cookie"]
        assert rita.get("/queue/", auth=("rita", "wrong")).status_code == 401
    with client(address, "olga") as olga:
        # The path that nginx unquotes and quotes again still names the channel.
        names = olga.get("/queue/channels?order=name").text
        links = re.findall(r'href="(/queue/channel(?:s/|\?name=)[^"]+)"', names)
        assert len(links) == len(HOSTILE) + 1
        for link in links:
            assert olga.get(html.unescape(link)).status_code == 200, link
        form = {"token": token_of(olga.get("/queue/channels/acme").text), "action": "pause"}
        origin = {"origin": address, "sec-fetch-site": "same-origin"}
        assert olga.post("/queue/channels/acme", data=form, headers=origin).status_code == 303
        assert "The channel is paused" in olga.get("/queue/channels/acme").text
    (record,) = queue.audit.page().items
    assert (record.actor, record.verb, record.subject) == ("olga", "channel_pause", "acme")


def test_pages_follow_the_queue_through_nginx(program: Any, served: str, queue: Queue) -> None:
    queue.enqueue("acme", 1)
    browser = Browser(
        program,
        ignore_https_errors=True,
        http_credentials={"username": "olga", "password": USERS["olga"]},
    )
    page = browser.page
    browser.open(f"{served}/queue/channels/acme")
    expect(page.locator(".verdict")).to_contain_text("The next message waits for a worker")
    queue.channel("acme").pause()
    expect(page.locator(".verdict")).to_contain_text("The channel is paused", timeout=20_000)
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("status").first).to_contain_text("releases messages again")
    assert {cookie["secure"] for cookie in page.context.cookies()} == {True}
    assert_clean(browser, f"{served}/queue")
    page.close()
