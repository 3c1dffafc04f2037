"""Installing a queue."""

from tests.conftest import Connect


def test_a_new_queue_is_sound(connect: Connect) -> None:
    assert connect().execute("select outcome from message_create('a', 'x')").fetchone() == ("created",)
