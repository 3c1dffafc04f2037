"""Names of bulk loads and streams belong to the role that uses them; other roles cannot interfere."""

import uuid

import psycopg
import pytest

from lonnymq import NewMessage, PublishOutcome, Queue
from lonnymq.schema.step import quote_identifier
from tests.sql.conftest import DENIED, Login, role_of
from tests.sql.session import Session

PUBLISH = "select outcome from lonnymq.message_publish(%s, %s, %s)"
BATCH = "select outcome from lonnymq.stream_publish(%s, %s, %s, %s)"


def stage_messages(session: Session, publication: str, messages: int = 1) -> uuid.UUID:
    part = uuid.uuid4()
    session.run(
        "insert into lonnymq.stage (publication, part, ordinal, channel, contents)"
        " values (%s, %s, 0, 'a', array_fill('x'::bytea, array[%s]))",
        publication,
        part,
        messages,
    )
    return part


def publish_part(session: Session, publication: str, part: uuid.UUID, messages: int = 1) -> str:
    outcome: str = session.ask(PUBLISH, publication, [part], [messages])
    return outcome


def publish_batch(session: Session, stream: str, batch: int) -> str:
    outcome: str = session.ask(BATCH, stream, batch, [stage_messages(session, f"stream {stream}")], [1])
    return outcome


def test_producers_can_use_the_same_publication_name(login: Login, queue: Session, dsn: str) -> None:
    squatter, victim = login("producer"), login("producer")
    for name in ("orders", "orders again"):
        assert publish_part(squatter, name, uuid.uuid4(), 0) == "published"
    with Queue(dsn) as client:
        messages = [NewMessage(channel="acme", payload=number) for number in range(2)]
        for expected in (PublishOutcome.PUBLISHED, PublishOutcome.ALREADY_PUBLISHED):
            loaded = client.copy_in(messages, publication="orders", connection=victim.connection)
            assert (loaded.outcome, loaded.created) == (expected, 2)
    assert queue.ask("select count(*) from message") == 2
    names = queue.rows("select name, count(distinct role) from publication group by 1 order by 1")
    assert names == [("orders", 2), ("orders again", 1)]


def test_a_producer_cannot_publish_or_discard_what_another_staged(login: Login) -> None:
    """Even if they know its name and its parts."""
    rival, producer = login("producer"), login("producer")
    part = stage_messages(producer, "p", 3)
    assert rival.ask("select stage_discard('p', %s)", [part]) == 0
    with pytest.raises(psycopg.Error) as raised:
        publish_part(rival, "p", part, 3)
    assert raised.value.sqlstate == "LQ005"
    assert publish_part(rival, "p", stage_messages(rival, "p")) == "published"
    worker = login("worker")
    assert worker.ask("select stage_prune()") == 0
    # Rows with the same name and part are counted per role.
    rival.run(
        "insert into stage (publication, part, ordinal, channel, contents) values ('p', %s, 0, 'b', '{y}')",
        part,
    )
    assert publish_part(producer, "p", part, 3) == "published"


def test_a_name_belongs_to_the_role_of_set_role(login: Login, queue: Session) -> None:
    """So logins that are replaced regularly can share names."""
    first, second, group = login(), login(), login("producer")
    for member in (first, second):
        queue.run(f"grant {quote_identifier(role_of(group))} to {quote_identifier(role_of(member))}")
        member.run(f"set role {quote_identifier(role_of(group))}")
    assert publish_part(first, "p", stage_messages(first, "p")) == "published"
    assert publish_part(second, "p", stage_messages(second, "p")) == "already_published"
    assert publish_part(group, "p", stage_messages(group, "p")) == "already_published"
    assert publish_batch(first, "s", 0) == "published"
    assert publish_batch(second, "s", 0) == "already_published"
    # A member has the group's privileges, but names of its own.
    first.run("reset role")
    assert publish_part(first, "p", stage_messages(first, "p")) == "published"


def test_streams_of_two_roles_with_the_same_name_are_independent(login: Login) -> None:
    squatter, producer = login("producer"), login("producer")
    assert publish_batch(squatter, "s", 1_000_000_000) == "published"
    for batch in (0, 1, 2):
        assert publish_batch(producer, "s", batch) == "published"
    assert publish_batch(producer, "s", 2) == "already_published"


def test_a_batch_number_far_ahead_is_refused(login: Login) -> None:
    producer = login("producer")
    for first in (1_000_000_001, 2**63 - 1):
        with pytest.raises(psycopg.Error, match="batch must be at most 1000000000 for the first batch"):
            publish_batch(producer, "s", first)
    assert publish_batch(producer, "s", 500) == "published"
    for batch in (2**63 - 1, 1_000_501):
        with pytest.raises(
            psycopg.Error, match=r"at most 1000500, because the last batch .* was 500"
        ) as raised:
            publish_batch(producer, "s", batch)
        assert raised.value.sqlstate == "LQ001"
    assert publish_batch(producer, "s", 501) == "published"
    assert publish_batch(producer, "s", 1_000_501) == "published"


@pytest.mark.parametrize("kind", ["producer", "operator"])
def test_the_role_and_age_of_a_staged_row_cannot_be_forged(login: Login, queue: Session, kind: str) -> None:
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
    stage_messages(session, "p")
    assert queue.ask("select role from stage") == role_of(session)
    assert queue.ask("select now() - staged_at < interval '1 minute' from stage")


def test_an_operator_sees_which_role_published_a_load(login: Login) -> None:
    producer, operator = login("producer"), login("operator")
    publish_part(producer, "p", stage_messages(producer, "p"))
    publish_batch(producer, "s", 0)
    for table in ("publication", "stream"):
        assert operator.rows(f"select role, created from {table}") == [(role_of(producer), 1)]
