"""What a tenant can do in its own channels: create, cancel, redrive and look."""

import uuid
from typing import Any

import psycopg
import pytest

from tests.sql.conftest import Login, Tenant, confine, quoted, role_of
from tests.sql.session import Session


def create(session: Session, channel: str, content: bytes = b"x", **options: Any) -> uuid.UUID:
    names = "".join(f", p_{name} => %s" for name in options)
    outcome, message_uuid = session.rows(
        f"select outcome, message_uuid from tenant_create(%s, %s{names})", channel, content, *options.values()
    )[0]
    assert outcome == "created"
    assert isinstance(message_uuid, uuid.UUID)
    return message_uuid


def outcome_of(session: Session, channel: str, **options: Any) -> str:
    names = "".join(f", p_{name} => %s" for name in options)
    answer: str = session.ask(
        f"select outcome from tenant_create(%s, 'x'{names})", channel, *options.values()
    )
    return answer


def error_of(session: Session, statement: str, *values: Any) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as raised:
        session.run(statement, *values)
    return raised.value


def test_a_tenant_creates_messages_that_workers_lease(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    create(acme, "acme", b"hello", key="k", max_attempts=3)
    leased = queue.lease()
    assert (leased.channel, leased.content, leased.key, leased.max_attempts) == ("acme", b"hello", "k", 3)


def test_a_tenant_creates_many_messages_in_several_channels(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme", prefix="acme/")
    create(acme, "acme", key="k")
    rows = acme.rows(
        "select ordinal, outcome, message_uuid from tenant_create_many("
        "'{acme/b,acme,acme/a,acme}', '{1,2,3,4}', p_keys => '{null,k,null,l}')"
    )
    assert [row[:2] for row in rows] == [(1, "created"), (2, "duplicate"), (3, "created"), (4, "created")]
    assert len({row[2] for row in rows}) == 4
    assert sorted(one.channel for one in queue.take(10)) == ["acme", "acme", "acme/a", "acme/b"]


def test_a_key_belongs_to_its_channel(tenant: Tenant) -> None:
    acme, other = tenant("acme"), tenant("other")
    first = create(acme, "acme", key="k")
    create(other, "other", key="k")
    assert acme.rows("select * from tenant_create('acme', 'y', p_key => 'k')") == [("duplicate", first)]


def test_a_message_keeps_its_uuid_when_it_dies_and_is_redriven(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    message_uuid = create(acme, "acme", b"hello")
    assert acme.rows("select message_uuid, status from tenant_show(%s)", [message_uuid]) == [
        (message_uuid, "waiting")
    ]
    queue.bury([queue.lease()], "broken")
    assert acme.rows("select message_uuid, error from tenant_dead_letter") == [(message_uuid, "broken")]
    assert acme.ask("select content from tenant_dead_list('acme')") == b"hello"
    assert acme.rows("select * from tenant_redrive(%s)", [message_uuid]) == [(message_uuid, "redriven")]
    assert acme.rows("select message_uuid from tenant_peek('acme')") == [(message_uuid,)]
    assert queue.ask("select message_of_uuid(%s)", message_uuid) == queue.lease().message_id


def test_dead_letters_are_listed_page_by_page(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme", prefix="acme/")
    made = [create(acme, channel) for channel in ("acme", "acme/a", "acme", "acme/b")]
    queue.bury(queue.take(4))
    page = "select message_uuid from tenant_dead_list(p_limit => 2, p_after => %s)"
    first = [one for (one,) in acme.rows(page, None)]
    assert first + [one for (one,) in acme.rows(page, first[-1])] == made
    error = error_of(acme, page, uuid.uuid4())
    assert error.sqlstate == "LQ001"
    assert acme.ask("select tenant_redrive_channel('acme')") == 2
    assert acme.ask("select count(*) from tenant_dead_letter") == 2


def test_a_tenant_cancels_its_messages_by_uuid_and_by_key(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    first, leased = create(acme, "acme"), create(acme, "acme", dequeue_at=-1)
    queue.lease()
    create(acme, "acme", key="k")
    unknown = uuid.uuid4()
    assert acme.rows("select * from tenant_cancel(%s)", [first, unknown, leased, first]) == [
        *((first, "cancelled"), (unknown, "unknown"), (leased, "cancelled"), (first, "cancelled")),
    ]
    assert acme.ask("select outcome from tenant_cancel_key('acme', 'k')") == "cancelled"
    assert acme.rows("select * from tenant_cancel_key('acme', 'k')") == [(None, "unknown")]


def test_a_tenant_sees_the_status_of_its_channels(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme", prefix="acme/")
    queue.set("acme", max_size=5, is_paused=True)
    queue.fill("other", 3)
    head = create(acme, "acme")
    create(acme, "acme/a")
    queue.fill("acme/b", 2)
    queue.lease()
    rows = acme.rows("select channel, reason, waiting, leased, head_uuid, max_size from tenant_status")
    assert rows[0] == ("acme", "paused", 1, 0, head, 5)
    assert [(row[0], row[2] + row[3]) for row in rows[1:]] == [("acme/a", 1), ("acme/b", 2)]


def test_a_tenant_sees_its_history(tenant: Tenant, queue: Session) -> None:
    queue.run('select queue_set(\'{"history": "full"}\')')
    acme = tenant("acme")
    made = [create(acme, "acme") for _ in range(3)]
    queue.fill("other", 1)
    queue.complete(queue.take(4))
    assert {one for (one,) in acme.rows("select message_uuid from tenant_history")} == set(made)
    rows = acme.rows("select ended_at, outcome from tenant_history_list('acme', 2)")
    assert [outcome for _, outcome in rows] == ["completed"] * 2
    last = min(ended_at for ended_at, _ in rows)
    assert all(
        ended_at < last
        for (ended_at,) in acme.rows("select ended_at from tenant_history_list('acme', 9, %s)", last)
    )


def test_history_of_later_days_is_indexed_only_for_tenants(tenant: Tenant, queue: Session) -> None:
    definition = "indexdef like '%(channel, ended_at)'"
    indexed = f"select count(*) from pg_indexes where schemaname = 'lonnymq' and {definition}"
    queue.run("select history_prepare(3)")
    assert queue.ask(indexed) == 0
    tenant("acme")
    before: int = queue.ask(indexed)
    assert before > 0
    queue.run("select history_prepare(40)")
    assert queue.ask(indexed) > before


def test_a_grant_does_not_depend_on_the_statistics_of_the_catalog(tenant: Tenant, queue: Session) -> None:
    """With them, PostgreSQL may look at the names of all relations before it looks for partitions."""
    queue.run("analyze")
    create(tenant("acme"), "acme")


# What a tenant cannot exceed.


def test_max_size_is_exact_however_many_sessions_create(tenant: Tenant, queue: Session, login: Login) -> None:
    """Otherwise each open transaction could create max_size messages."""
    queue.set("acme", max_size=4)
    first, second = tenant("acme"), login()
    confine(queue, second, "acme")
    create(first, "acme")
    first.run("begin")
    assert [outcome_of(first, "acme") for _ in range(2)] == ["created"] * 2
    second.run("set lock_timeout = '50ms'")
    assert error_of(second, "select tenant_create('acme', 'x')").sqlstate == "55P03"
    first.run("commit")
    assert [outcome_of(second, "acme") for _ in range(3)] == ["created", "dropped", "dropped"]
    for level in ("repeatable read", "serializable"):
        second.run(f"begin isolation level {level}")
        assert error_of(second, "select tenant_create('acme', 'x')").sqlstate == "LQ002"
        second.run("rollback")
    many = second.rows("select outcome from tenant_create_many('{acme,acme}', '{x,x}')")
    assert many == [("dropped",)] * 2


def test_the_default_policy_binds_tenants_who_see_it_and_cannot_change_it(
    tenant: Tenant, queue: Session
) -> None:
    queue.run("""select queue_set('{"default_policy": {"max_size": 2, "max_attempts": 3}}')""")
    queue.set("free", max_size="none")
    acme = tenant("acme", "free")
    assert [outcome_of(acme, "acme") for _ in range(3)] == ["created", "created", "dropped"]
    assert [outcome_of(acme, "free") for _ in range(3)] == ["created"] * 3
    assert acme.rows("select outcome from tenant_create_many('{acme,free}', '{x,x}')") == [
        ("dropped",),
        ("created",),
    ]
    shown = "select channel, max_size, policy_sources ->> 'max_size' from tenant_status order by channel"
    assert acme.rows(shown) == [("acme", 2, "default"), ("free", None, "lifted")]
    error = error_of(acme, "select tenant_create('acme', 'x', p_max_attempts => 4)")
    assert "at most 3, the limit of its channel" in str(error)
    assert error_of(acme, """select queue_set('{"default_policy": null}')""").sqlstate == "42501"


def test_a_tenant_that_waits_for_itself_delays_no_other_call(tenant: Tenant, queue: Session) -> None:
    queue.set("acme", max_size=10)
    queue.set("other", max_size=10)
    acme, other = tenant("acme"), tenant("other")
    create(acme, "acme")
    acme.run("begin")
    create(acme, "acme")
    queue.run("set lock_timeout = '1ms'")
    other.run("set lock_timeout = '1ms'")
    create(other, "other")
    queue.create("acme")
    queue.set("acme", max_size=20)
    assert len(queue.take(10)) == 3
    queue.run("select queue_revoke(%s)", role_of(acme))
    acme.run("commit")


def test_redriven_messages_count_towards_max_size(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    dead = [create(acme, "acme") for _ in range(4)]
    queue.bury(queue.take(4))
    queue.set("acme", max_size=2)
    create(acme, "acme")
    outcomes = acme.rows("select message_uuid, outcome from tenant_redrive(%s)", dead)
    assert [one for one, _ in outcomes] == dead
    assert sorted(outcome for _, outcome in outcomes) == ["dropped", "dropped", "dropped", "redriven"]
    assert acme.ask("select tenant_redrive_channel('acme')") == 0
    assert acme.ask("select count(*) from tenant_dead_letter") == 3
    queue.set("acme", max_size=3)
    assert acme.ask("select tenant_redrive_channel('acme')") == 1


def test_max_attempts_is_at_most_the_limit_of_the_channel(tenant: Tenant, queue: Session) -> None:
    queue.set("acme", max_attempts=3)
    acme = tenant("acme")
    create(acme, "acme", max_attempts=3)
    for call in (
        "tenant_create('acme', 'x', p_max_attempts => 4)",
        "tenant_create_many('{acme,acme}', '{x,x}', p_max_attempts => '{1,4}')",
    ):
        assert error_of(acme, f"select {call}").sqlstate == "LQ001"


def test_a_tenant_uses_few_channels_under_its_prefix(tenant: Tenant, queue: Session, login: Login) -> None:
    acme = tenant(prefix="acme/", max_channels=2)
    for channel in ("acme/a", "acme/b", "acme/a"):
        create(acme, channel)
    assert error_of(acme, "select tenant_create('acme/c', 'x')").sqlstate == "42501"
    assert error_of(acme, "select tenant_create_many('{acme/c}', '{x}')").sqlstate == "42501"
    queue.complete(queue.take(3))
    assert queue.ask("select channel_delete('acme/a')") == "deleted"
    create(acme, "acme/c")
    second = login()
    confine(queue, second, prefix="acme/", max_channels=3)
    create(second, "acme/d")
    assert error_of(second, "select tenant_create('acme/e', 'x')").sqlstate == "42501"


def test_two_sessions_cannot_add_more_channels_than_allowed(tenant: Tenant, queue: Session) -> None:
    acme = tenant(prefix="acme/", max_channels=1)
    create(acme, "acme/a")
    confine(queue, acme, prefix="acme/", max_channels=2)
    acme.run("begin")
    create(acme, "acme/b")
    again = Session(psycopg.connect(acme.connection.info.dsn, password="a password", autocommit=True))
    again.run("set search_path = lonnymq; set lock_timeout = '50ms'")
    assert error_of(again, "select tenant_create('acme/c', 'x')").sqlstate == "55P03"
    acme.run("commit")
    assert error_of(again, "select tenant_create('acme/c', 'x')").sqlstate == "42501"
    create(again, "acme/b")
    again.connection.close()


# Which channels a grant covers.


def test_a_prefix_covers_exactly_the_names_that_begin_with_it(tenant: Tenant) -> None:
    acme = tenant("b", prefix="a_%/", max_channels=100)
    for channel in ("a_%/", "a_%/x", "a_%/\u00e9", "a_%/" + chr(0x10FFFF), "b"):
        create(acme, channel)
    for channel in ("a_%", "a_%0", "abc/x", "A_%/x", " a_%/x", "a_%.", "ba_%/x", "b/", "b ", "B", "a"):
        assert error_of(acme, "select tenant_create(%s, 'x')", channel).sqlstate == "42501", channel
    for invalid in ("", "a_%/\n", None, "a_%/" + "x" * 252):
        assert error_of(acme, "select tenant_create(%s, 'x')", invalid).sqlstate == "LQ001", invalid


def test_a_tenant_can_have_many_channels_and_prefixes(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme", "acme/1", "acme/2/3", "acme0", "zoo")
    confine(queue, acme, prefix="acme/2/")
    confine(queue, acme, prefix="zoo:", max_channels=3)
    confine(queue, acme, "zoo:x", "acme/2/4")
    grants = "select name, is_prefix, max_channels from tenant order by name"
    assert queue.rows(grants) == [
        *(("acme", False, None), ("acme/1", False, None), ("acme/2/", True, 10), ("acme0", False, None)),
        *(("zoo", False, None), ("zoo:", True, 3)),
    ]
    for channel in ("acme", "acme/1", "acme/2/", "acme/2/3", "acme/2/z", "acme0", "zoo", "zoo:x"):
        create(acme, channel)
    for channel in ("acme/", "acme/0", "acme/10", "acme/2", "acme/3", "acme00", "zo", "zoo;"):
        assert error_of(acme, "select tenant_create(%s, 'x')", channel).sqlstate == "42501", channel
    confine(queue, acme, prefix="acme/")
    assert [row[0] for row in queue.rows(grants)] == ["acme", "acme/", "acme0", "zoo", "zoo:"]
    confine(queue, acme, prefix="acme/2/")
    assert len(queue.rows(grants)) == 5


@pytest.mark.parametrize(
    ("channels", "prefix", "max_channels"),
    [
        (None, None, None),
        ([], None, None),
        (None, "", None),
        (None, "acme", None),
        (None, "acme\u2013", None),
        (None, "acme/\n", None),
        (None, "\x01/", None),
        (None, "x" * 255 + "/", None),
        (["a"], None, 3),
        (None, "acme/", 0),
        (None, "acme/", 10_001),
        (["a", ""], None, None),
        (["a", None], None, None),
    ],
)
def test_a_grant_without_clear_bounds_is_refused(
    login: Login, queue: Session, channels: Any, prefix: Any, max_channels: Any
) -> None:
    role = role_of(login())
    grant = "select queue_grant(%s, 'tenant', %s, %s, %s)"
    assert error_of(queue, grant, role, channels, prefix, max_channels).sqlstate == "LQ001"
    assert queue.ask("select count(*) from tenant") == 0


@pytest.mark.parametrize("kind", ["producer", "worker", "reader", "operator"])
def test_a_tenant_can_have_no_other_kind(login: Login, tenant: Tenant, queue: Session, kind: str) -> None:
    other = login(kind)
    assert error_of(queue, "select queue_grant(%s, 'tenant', '{a}')", role_of(other)).sqlstate == "LQ001"
    acme = tenant("acme")
    assert error_of(queue, "select queue_grant(%s, %s)", role_of(acme), kind).sqlstate == "LQ001"
    queue.run("select queue_revoke(%s)", role_of(acme))
    queue.run("select queue_grant(%s, %s)", role_of(acme), kind)
    for more in ("'{a}'", "null, 'a/'", "null, null, 3"):
        error = error_of(queue, f"select queue_grant(%s, %s, {more})", role_of(acme), kind)
        assert error.sqlstate == "LQ001"


def test_owners_superusers_and_members_of_other_kinds_cannot_be_tenants(login: Login, queue: Session) -> None:
    producer, member = login("producer"), login()
    queue.run(f"grant {quoted(producer)} to {quoted(member)}")
    for role in (role_of(queue), role_of(member)):
        assert error_of(queue, "select queue_grant(%s, 'tenant', '{a}')", role).sqlstate == "LQ001"


# Which role counts.


def test_set_role_makes_a_pool_the_tenant_of_each_request(
    tenant: Tenant, login: Login, queue: Session
) -> None:
    acme, other, pool = tenant("acme"), tenant("other"), login()
    queue.run(f"grant {quoted(acme)}, {quoted(other)} to {quoted(pool)}")
    pool.run("begin")
    pool.run(f"set local role {quoted(acme)}")
    create(pool, "acme")
    assert [row[0] for row in pool.rows("select * from tenant_status")] == ["acme"]
    assert error_of(pool, "select tenant_create('other', 'x')").sqlstate == "42501"
    pool.run("rollback")
    pool.run("begin")
    pool.run(f"set local role {quoted(other)}")
    create(pool, "other")
    pool.run("commit")


def test_a_member_is_no_tenant_until_it_sets_the_role(tenant: Tenant, login: Login, queue: Session) -> None:
    """A pool that forgets SET ROLE must not be all tenants at once."""
    acme, other, pool = tenant("acme"), tenant("other"), login()
    queue.run(f"grant {quoted(acme)}, {quoted(other)} to {quoted(pool)}")
    for channel in ("acme", "other"):
        assert error_of(pool, "select tenant_create(%s, 'x')", channel).sqlstate == "42501"
    assert pool.rows("select * from tenant_status") == []


def test_a_revoked_tenant_can_do_nothing(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    message_uuid = create(acme, "acme")
    acme.run("prepare made as select tenant_create('acme', 'x')")
    acme.run("execute made")
    queue.run("select queue_revoke(%s)", role_of(acme))
    for statement in (
        "execute made",
        "select lonnymq.tenant_create('acme', 'x')",
        f"select lonnymq.tenant_cancel('{{{message_uuid}}}')",
        "select from lonnymq.tenant_status",
    ):
        # Without the schema, search_path does not find the function.
        assert error_of(acme, statement).sqlstate in ("42501", "42883"), statement
    confine(queue, acme, "new")
    assert error_of(acme, "select tenant_create('acme', 'x')").sqlstate == "42501"
    assert acme.rows("select outcome from tenant_cancel(%s)", [message_uuid]) == [("unknown",)]
    create(acme, "new")


def test_a_new_role_does_not_get_the_channels_of_a_dropped_one(login: Login, queue: Session) -> None:
    """Neither by its name nor by its oid, and neither does a role that is renamed."""
    role = f"lonny_{uuid.uuid4().hex[:8]}"
    queue.run(f"create role {role}")
    queue.run("select queue_grant(%s, 'tenant', '{acme}')", role)
    queue.run(f"alter role {role} rename to {role}_old")
    queue.run(f"create role {role}")
    queue.run("select queue_grant(%s, 'tenant', '{other}')", role)
    grants = "select role::text, name from tenant order by name"
    assert queue.rows(grants) == [(f"{role}_old", "acme"), (role, "other")]
    queue.run(f"drop owned by {role}; drop role {role}")
    stranger = login()
    # As if the new role had got the oid of the dropped one.
    queue.run("update tenant set role = %s::regrole where name = 'other'", quoted(stranger))
    confine(queue, stranger, "mine")
    assert [name for _, name in queue.rows(grants)] == ["acme", "mine"]
    queue.run("select queue_revoke(%s)", f"{role}_old")
    queue.run(f"drop role {role}_old")


def test_a_renamed_role_gives_its_name_to_no_open_session(login: Login, queue: Session) -> None:
    """SET ROLE notes the name, which another role may get meanwhile."""
    first, second = (f"lonny_{uuid.uuid4().hex[:8]}" for _ in range(2))
    for role, channel in ((first, "first"), (second, "second")):
        queue.run(f"create role {role}")
        queue.run("select queue_grant(%s, 'tenant', array[%s])", role, channel)
    pool = login()
    queue.run(f"grant {first} to {quoted(pool)}")
    pool.run(f"set role {first}")
    queue.run(f"alter role {first} rename to {first}_old; alter role {second} rename to {first}")
    assert error_of(pool, "select tenant_create('second', 'x')").sqlstate == "42501"
    queue.run(f"select queue_revoke('{first}'), queue_revoke('{first}_old')")
    pool.run("reset role")
    queue.run(f"drop role {first}, {first}_old")


def test_grants_survive_a_migration(tenant: Tenant, queue: Session) -> None:
    from tests import schema

    acme = tenant("acme", prefix="acme/")
    schema.migrate(queue.connection)
    create(acme, "acme")
    create(acme, "acme/a")
    assert len(acme.rows("select * from tenant_status")) == 2
