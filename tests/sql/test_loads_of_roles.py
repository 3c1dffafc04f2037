"""Names of bulk loads and streams belong to the role that uses them: no other role can take or spoil one."""

import uuid

import psycopg
import pytest

from lonnymq import NewMessage, PublishOutcome, Queue
from lonnymq.schema.step import quoted
from tests.sql.conftest import DENIED, Login, role_of
from tests.sql.session import Session

PUBLISH = "select outcome from lonnymq.message_publish(%s, %s, %s)"
BATCH = "select outcome from lonnymq.stream_publish(%s, %s, %s, %s)"


def staged(session: Session, publication: str, messages: int = 1) -> uuid.UUID:
    part = uuid.uuid4()
    session.run(
        "insert into lonnymq.stage (publication, part, ordinal, channel, contents)"
        " values (%s, %s, 0, 'a', array_fill('x'::bytea, array[%s]))",
        publication,
        part,
        messages,
    )
    return part


def published(session: Session, publication: str, part: uuid.UUID, messages: int = 1) -> str:
    outcome: str = session.ask(PUBLISH, publication, [part], [messages])
    return outcome


def sent(session: Session, stream: str, batch: int) -> str:
    outcome: str = session.ask(BATCH, stream, batch, [staged(session, f"stream {stream}")], [1])
    return outcome


def test_a_name_that_another_producer_has_used_is_still_free(login: Login, queue: Session, dsn: str) -> None:
    squatter, victim = login("producer"), login("producer")
    for name in ("orders", "orders again"):
        assert published(squatter, name, uuid.uuid4(), 0) == "published"
    with Queue(dsn) as client:
        messages = [NewMessage(channel="acme", payload=number) for number in range(2)]
        for expected in (PublishOutcome.PUBLISHED, PublishOutcome.ALREADY_PUBLISHED):
            loaded = client.copy_in(messages, publication="orders", connection=victim.connection)
            assert (loaded.outcome, loaded.created) == (expected, 2)
    assert queue.ask("select count(*) from message") == 2
    names = queue.rows("select name, count(distinct role) from publication group by 1 order by 1")
    assert names == [("orders", 2), ("orders again", 1)]


def test_what_a_producer_has_staged_is_safe_from_the_others(login: Login) -> None:
    """Though they know its name and its parts."""
    rival, producer = login("producer"), login("producer")
    part = staged(producer, "p", 3)
    assert rival.ask("select stage_discard('p', %s)", [part]) == 0
    with pytest.raises(psycopg.Error) as raised:
        published(rival, "p", part, 3)
    assert raised.value.sqlstate == "LQ005"
    assert published(rival, "p", staged(rival, "p")) == "published"
    worker = login("worker")
    assert worker.ask("select stage_prune()") == 0
    # Rows under the same name and part are counted by whose they are.
    rival.run(
        "insert into stage (publication, part, ordinal, channel, contents) values ('p', %s, 0, 'b', '{y}')",
        part,
    )
    assert published(producer, "p", part, 3) == "published"


def test_a_name_belongs_to_the_role_that_was_set(login: Login, queue: Session) -> None:
    """So that logins that change, as rotated ones do, can share names."""
    first, second, group = login(), login(), login("producer")
    for member in (first, second):
        queue.run(f"grant {quoted(role_of(group))} to {quoted(role_of(member))}")
        member.run(f"set role {quoted(role_of(group))}")
    assert published(first, "p", staged(first, "p")) == "published"
    assert published(second, "p", staged(second, "p")) == "already_published"
    assert published(group, "p", staged(group, "p")) == "already_published"
    assert sent(first, "s", 0) == "published"
    assert sent(second, "s", 0) == "already_published"
    # A member may do what the group may, and yet has names of its own.
    first.run("reset role")
    assert published(first, "p", staged(first, "p")) == "published"


def test_a_stream_goes_on_whatever_others_send_under_its_name(login: Login) -> None:
    squatter, producer = login("producer"), login("producer")
    assert sent(squatter, "s", 1_000_000_000) == "published"
    for batch in (0, 1, 2):
        assert sent(producer, "s", batch) == "published"
    assert sent(producer, "s", 2) == "already_published"


def test_a_batch_far_ahead_is_refused_and_the_stream_goes_on(login: Login) -> None:
    producer = login("producer")
    for first in (1_000_000_001, 2**63 - 1):
        with pytest.raises(psycopg.Error, match="batch must be at most 1000000000 for the first batch"):
            sent(producer, "s", first)
    assert sent(producer, "s", 500) == "published"
    for batch in (2**63 - 1, 1_000_501):
        with pytest.raises(psycopg.Error, match=r"at most 1000500, as the last batch .* was 500") as raised:
            sent(producer, "s", batch)
        assert raised.value.sqlstate == "LQ001"
    assert sent(producer, "s", 501) == "published"
    assert sent(producer, "s", 1_000_501) == "published"


@pytest.mark.parametrize("kind", ["producer", "operator"])
def test_nobody_says_for_another_whose_a_row_is_or_how_old(login: Login, queue: Session, kind: str) -> None:
    session = login(kind)
    for column, value in (("staged_at", "'infinity'"), ("role", "'postgres'")):
        with pytest.raises(DENIED):
            session.run(
                f"insert into stage (publication, part, ordinal, channel, contents, {column})"
                f" values ('p', gen_random_uuid(), 0, 'a', '{{x}}', {value})"
            )
        with (
            pytest.raises(DENIED),
            session.connection.cursor().copy(f"copy stage ({column}) from stdin") as copy,
        ):
            copy.write("x\n")
    staged(session, "p")
    assert queue.ask("select role from stage") == role_of(session)
    assert queue.ask("select now() - staged_at < interval '1 minute' from stage")


def test_an_operator_sees_whose_loads_there_were(login: Login) -> None:
    producer, operator = login("producer"), login("operator")
    published(producer, "p", staged(producer, "p"))
    sent(producer, "s", 0)
    for table in ("publication", "stream"):
        assert operator.rows(f"select role, created from {table}") == [(role_of(producer), 1)]
