"""ids_advance: no id is issued twice, and nothing is forgotten, whatever the sequences are."""

from concurrent.futures import ThreadPoolExecutor

from tests.sql.conftest import Open
from tests.sql.session import Session, ids_of


def test_ids_continue_above_all_that_are_known(queue: Session) -> None:
    queue.run('select queue_set(\'{"history": "metadata"}\')')
    queue.fill("a", 3)
    dead, ended = queue.take(2)
    queue.bury([dead], "x")
    queue.complete([ended])
    for highest in ("update dead set message_id = 500000000", "update history set message_id = 600000000"):
        queue.run(highest)
        first = queue.ask("select ids_advance(10000)")
        assert first > int(highest.split()[-1]) + 10_000
        assert queue.create("a") == first
    assert len(queue.drain()) == 3


def test_ids_are_advanced_while_the_queue_is_in_use(queue: Session, session: Open) -> None:
    producers = [session() for _ in range(2)]

    def create(producer: Session) -> list[int]:
        return [producer.create(f"channel {n % 5}") for n in range(300)]

    with ThreadPoolExecutor(len(producers)) as pool:
        creating = [pool.submit(create, producer) for producer in producers]
        while not all(one.done() for one in creating):
            queue.ask("select ids_advance(10000)")
    created = [message_id for one in creating for message_id in one.result()]
    assert len(set(created)) == len(created) == 600
    # Each wake was read: no message is forgotten.
    assert sorted(ids_of(queue.drain())) == sorted(created)
    assert queue.problems() == []
