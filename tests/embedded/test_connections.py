import socket

import psycopg
import pytest

from lonnymq.embedded import EmbeddedError, ServerNotStarted, embedded


def test_a_port_is_open_only_on_loopback_and_requires_a_password(ask):
    with embedded(port=0, fsync=False) as server:
        assert f"@127.0.0.1:{server.port}/" in server.dsn
        assert ask(server.dsn, "select host(inet_server_addr())") == "127.0.0.1"
        assert ask(server.dsn, "show listen_addresses") == "127.0.0.1"
        assert ask(f"host={server.socket_dir} port={server.port} user=postgres") == 1
        for wrong in ("", ":guess"):
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(
                    f"postgresql://postgres{wrong}@127.0.0.1:{server.port}/postgres", passfile="/dev/null"
                )


def test_the_socket_can_be_left_out(ask):
    with embedded(unix_socket=False, fsync=False) as server:
        assert server.socket_dir is None
        assert ask(server.dsn) == 1
        assert ask(server.dsn, "show unix_socket_directories") == ""


def test_the_port_survives_a_restart_and_a_crash():
    with embedded(port=0, fsync=False) as server:
        dsn = server.dsn
        server.restart()
        assert server.dsn == dsn
        server.kill()
        server.start()
        assert server.dsn == dsn


def test_a_chosen_port_is_used_or_refused(ask):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        probe.listen()
        port = probe.getsockname()[1]
        with pytest.raises(ServerNotStarted, match="Address already in use"):
            embedded(port=port, fsync=False)
    with embedded(port=port, fsync=False) as server:
        assert server.port == port
        assert ask(server.dsn) == 1


def test_a_free_port_that_another_program_took_is_replaced(ask):
    with embedded(port=0, fsync=False) as server:
        former_port = server.port
        server.kill()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", former_port))
            other.listen()
            server.start()
            assert server.port != former_port
            assert ask(server.dsn) == 1


@pytest.mark.parametrize("port", [-1, 65536])
def test_an_invalid_port_is_refused(port):
    with pytest.raises(EmbeddedError, match="port must be"):
        embedded(port=port)
