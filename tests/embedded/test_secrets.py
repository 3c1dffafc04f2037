"""The server does not inherit the caller's environment."""

from pathlib import Path

from lonnymq.embedded.postmaster import _children

CODE = "from lonnymq.embedded import *; s = embedded(fsync=False); print(s.dsn); print(s.pid); input()"


def test_the_server_does_not_inherit_secrets(run_python, ask):
    secrets = {"API_TOKEN": "s3cret-1", "AWS_SECRET_ACCESS_KEY": "s3cret-2", "PGPASSWORD": "s3cret-3"}
    process = run_python(CODE, env={**secrets, "TZ": "Asia/Tokyo"})
    dsn, pid = process.stdout.readline().strip(), int(process.stdout.readline())
    ask(dsn, "create table seen (line text)")
    ask(dsn, "copy seen from program 'env' with (format csv, delimiter e'\\x01', quote e'\\x02')")
    seen = ask(dsn, "select string_agg(line, chr(10)) from seen")
    assert "s3cret" not in seen
    assert "TZ=Asia/Tokyo" in seen
    assert "PATH=" in seen
    # The watchdog and the server are children of the program, and backends are children of the server.
    family = [*_children(process.pid), *_children(pid)]
    assert pid in family
    assert len(family) > 3
    for member in family:
        assert b"s3cret" not in Path(f"/proc/{member}/environ").read_bytes(), member
    process.communicate("\n")
