"""What a tenant tries in order to get past its limits: max_size, max_channels, its kind and its texts."""

import itertools
from typing import Any

import psycopg
import pytest

from tests.sql.conftest import DENIED, Login, Tenant, confine, role_of
from tests.sql.session import Session

# All ways to make messages wait, each of which is tried while the channel is full.
MORE = (
    "select tenant_create('acme', 'x')",
    "select tenant_create('acme', 'x', p_delay_ms => 60000)",
    "select tenant_create('acme', 'x', p_dequeue_at => -1)",
    "select tenant_create('acme', 'x', p_key => 'new')",
    "select tenant_create('acme', 'x', p_max_attempts => 1)",
    """select tenant_create('acme', 'x', p_headers => '{"lonnymq-on-buried": "acme"}')""",
    "select tenant_create_many(array_fill('acme'::text, '{9}'), array_fill('x'::bytea, '{9}'))",
    "select tenant_create_many('[5:6]={acme,acme}', '[7:8]={x,y}')",
    "select tenant_create_many('{{acme,acme},{acme,acme}}', '{{x,x},{x,x}}')",
    "select tenant_create_many('{acme,acme}', '{x,x}', p_keys => '{new,new}')",
    "select tenant_redrive(array(select message_uuid from tenant_dead_letter))",
    "select tenant_redrive(array(select message_uuid from tenant_dead_letter"
    " cross join generate_series(1, 3)))",
    "select tenant_redrive_channel('acme')",
    "select tenant_redrive_channel('acme', 1) from generate_series(1, 3)",
    "select lonnymq.tenant_create(c, 'x') from (values ('acme'), ('acme')) v(c) order by random()",
    "do $$ begin for i in 1..3 loop begin perform tenant_create('acme', 'x');"
    " exception when others then null; end; end loop; end $$",
    "create function pg_temp.stable_one() returns text stable language sql as"
    " $$ select outcome from lonnymq.tenant_create('acme', 'x') $$;"
    " select pg_temp.stable_one() from generate_series(1, 3)",
    "begin; declare c cursor for select tenant_create('acme', 'x') from generate_series(1, 3);"
    " fetch 3 from c; commit",
    "begin; savepoint s; select tenant_create('acme', 'x'); rollback to s;"
    " select tenant_create('acme', 'x'); commit",
    "prepare p as select tenant_create('acme', 'x'); execute p; execute p; deallocate p",
)


def waiting(queue: Session, channel: str) -> int:
    count: int = queue.ask(
        "select count(*) from message m where m.channel_id ="
        " (select channel_id(s.salt, %s) from setting s) and not exists"
        " (select from lease l where l.message_id = m.id)",
        channel,
    )
    return count


def refused(session: Session, statement: str, *values: Any) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as raised:
        session.run(statement, *values)
    return raised.value


@pytest.mark.parametrize("is_default", [True, False], ids=["by default", "its own"])
def test_no_way_of_creating_exceeds_max_size(tenant: Tenant, queue: Session, is_default: bool) -> None:
    acme = tenant("acme")
    acme.run("select tenant_create_many(array_fill('acme'::text, '{4}'), array_fill('x'::bytea, '{4}'))")
    queue.bury(queue.take(4))
    if is_default:
        queue.run("""select queue_set('{"default_policy": {"max_size": 2}}')""")
    else:
        queue.set("acme", max_size=2)
    for is_leased, statement in itertools.product((False, True), MORE):
        for _ in range(2):
            acme.run("select tenant_create('acme', 'x')")
        if is_leased:
            # What workers hold does not wait, so there is room for two more.
            assert len(queue.take(2)) == 2
            acme.run("select tenant_create('acme', 'x'), tenant_create('acme', 'x')")
        assert waiting(queue, "acme") == 2
        acme.run(statement)
        assert waiting(queue, "acme") == 2, statement
        acme.run("drop function if exists pg_temp.stable_one()")
    assert acme.ask("select count(*) from tenant_dead_letter") == 4


def test_cancelling_makes_room_for_as_many_as_were_cancelled(tenant: Tenant, queue: Session) -> None:
    """However often a message is cancelled, by uuid or by key, and if that is rolled back."""
    queue.run("""select queue_set('{"default_policy": {"max_size": 2}}')""")
    acme = tenant("acme")
    create = "select outcome from tenant_create('acme', 'x', p_key => %s)"
    for key in "ab":
        assert acme.ask(create, key) == "created"
    first = acme.ask("select message_uuid from tenant_peek('acme')")
    acme.run("begin")
    assert acme.rows("select outcome from tenant_cancel(%s)", [first] * 3) == [("cancelled",)] * 3
    assert acme.ask("select outcome from tenant_cancel_key('acme', 'a')") == "unknown"
    assert [acme.ask(create, key) for key in "cd"] == ["created", "dropped"]
    acme.run("rollback")
    assert acme.ask(create, "e") == "dropped"
    assert len(queue.take(1)) == 1
    assert acme.ask(create, "f") == "created"
    assert acme.ask(create, "g") == "dropped"
    assert waiting(queue, "acme") == 2


def test_a_leased_message_that_is_cancelled_makes_room_for_one(tenant: Tenant, queue: Session) -> None:
    """As the how-to says. When its worker learns that it was cancelled, that makes no more room."""
    queue.set("acme", max_size=2)
    acme = tenant("acme")
    create = "select outcome from tenant_create('acme', 'x')"
    uuids = [acme.ask("select message_uuid from tenant_create('acme', 'x')") for _ in range(2)]
    held = queue.take(2)
    assert [acme.ask(create) for _ in range(3)] == ["created", "created", "dropped"]
    for _ in range(2):
        assert acme.rows("select outcome from tenant_cancel(%s)", uuids)[0] in (("cancelled",), ("unknown",))
    assert [acme.ask(create) for _ in range(3)] == ["created", "created", "dropped"]
    assert queue.complete(held) == ["cancelled"] * 2
    assert acme.ask(create) == "dropped"
    assert waiting(queue, "acme") == 4


def test_what_workers_return_is_not_refused(tenant: Tenant, queue: Session) -> None:
    """Nobody could keep it. The tenant can create more only when there is room again."""
    queue.set("acme", max_size=2)
    acme = tenant("acme")
    notice = """{"lonnymq-on-buried": "acme"}"""
    for _ in range(2):
        acme.run("select tenant_create('acme', 'x', p_headers => %s)", notice)
    held = queue.take(2)
    for _ in range(2):
        acme.run("select tenant_create('acme', 'x')")
    queue.bury(held[:1])
    queue.defer(held[1:], delay_ms=0)
    assert waiting(queue, "acme") == 4
    assert acme.ask("select outcome from tenant_create('acme', 'x')") == "dropped"


def test_a_channel_that_is_named_like_the_prefix_counts_as_one(
    tenant: Tenant, queue: Session, login: Login
) -> None:
    acme = tenant(prefix="acme/", max_channels=1)
    acme.run("select tenant_create('acme/', 'x')")
    assert refused(acme, "select tenant_create('acme/a', 'x')").sqlstate == "42501"
    queue.complete(queue.take(1))
    assert queue.ask("select channel_delete('acme/')") == "deleted"
    acme.run("select tenant_create('acme/a', 'x')")
    assert refused(acme, "select tenant_create('acme/', 'x')").sqlstate == "42501"
    # The prefix of another role uses up no channel.
    confine(queue, login(), prefix="acme/b/")
    confine(queue, acme, prefix="acme/", max_channels=2)
    acme.run("select tenant_create('acme/', 'x')")


def test_a_flood_of_channels_leaves_nothing(tenant: Tenant, queue: Session) -> None:
    acme = tenant(prefix="acme/", max_channels=3)
    names = [f"acme/{n}" for n in range(2_000)]
    before = queue.rows("select count(*) from tenant_channel union all select count(*) from wake")
    many = "select tenant_create_many(%s, array_fill('x'::bytea, '{2000}'))"
    assert refused(acme, many, names).sqlstate == "42501"
    for name in names[:20]:
        acme.run("begin")
        acme.run("select tenant_create(%s, 'x')", name)
        acme.run("rollback")
    assert queue.rows("select count(*) from tenant_channel union all select count(*) from wake") == before
    acme.run("do $$ begin for i in 1..50 loop begin perform tenant_create('acme/' || i, 'x');"
             " exception when insufficient_privilege then null; end; end loop; end $$")  # fmt: skip
    assert queue.ask("select count(distinct channel_id) from message") == 3


@pytest.mark.parametrize(
    ("call", "size"),
    [
        ("tenant_create(%s, 'x')", 255),
        ("tenant_create('acme', 'x', p_key => %s)", 255),
        ("tenant_create('acme', 'x', p_headers => jsonb_build_object(%s::text, ''))", 255),
        ("tenant_create('acme', 'x', p_headers => jsonb_build_object('h', %s::text))", 2_045),
        ("tenant_cancel_key('acme', %s)", None),
        ("tenant_peek(%s)", 255),
    ],
)
def test_huge_texts_are_refused_in_few_words(
    tenant: Tenant, queue: Session, call: str, size: int | None
) -> None:
    """Each character takes four bytes."""
    huge = tenant("acme", prefix="\N{ROCKET}/", max_channels=2)
    letter = "\N{ROCKET}"
    if size:
        fits = f"{letter}/".ljust(size, letter) if "(%s" in call else letter * size
        huge.run(f"select {call}", fits)
    for length in ([size + 1] if size else []) + [1_000_000]:
        if size is None:
            huge.run(f"select {call}", letter * length)
        else:
            error = refused(huge, f"select {call}", letter * length)
            assert error.sqlstate in ("LQ001", "42501")
            assert len(str(error.diag.message_primary)) < 400
    assert waiting(queue, "acme") <= 1


def test_headers_of_any_shape_are_refused(tenant: Tenant, queue: Session) -> None:
    acme = tenant("acme")
    many = "{" + ",".join(f'"{n}":"{n}"' for n in range(2_000)) + "}"
    for headers in ("[]", '"x"', "1", "null", '{"a": 1}', '{"a": {"b": "c"}}', '{"": "x"}', many):
        error = refused(acme, "select tenant_create('acme', 'x', p_headers => %s::jsonb)", headers)
        assert error.sqlstate == "LQ001", headers
    deep = "[" * 5_000 + "]" * 5_000
    for headers in (deep, '{"a": "\\u0000"}', '{"a": "\\ud800"}', '{"a\\n": "x"}'):
        refused(acme, "select tenant_create('acme', 'x', p_headers => %s::jsonb)", headers)
    assert queue.ask("select count(*) from message") == 0


# Which roles can be confined.


@pytest.mark.parametrize(
    "privilege",
    [
        "grant select on message to {}",
        "grant select (name) on channel to {}",
        "grant insert on wake to {}",
        "grant update (max_size) on channel to {}",
        "grant delete on dead to {}",
        "grant truncate on history to {}",
        "grant trigger on message to {}",
        "grant references on message to {}",
        "grant pg_read_all_data to {}",
        "grant pg_write_all_data to {}",
        "grant pg_monitor to {}",
        "grant pg_signal_backend to {}",
        "alter role {} createrole",
        "alter role {} replication",
        "alter role {} superuser",
    ],
)
def test_a_role_with_other_ways_cannot_be_a_tenant(login: Login, queue: Session, privilege: str) -> None:
    stranger = login()
    name = role_of(stranger)
    quoted_name = '"' + name.replace('"', '""') + '"'
    queue.run(privilege.format(quoted_name))
    error = refused(queue, "select queue_grant(%s, 'tenant', '{acme}')", name)
    assert error.sqlstate == "LQ001"
    assert "role must be a role " in str(error)
    queue.run(f"alter role {quoted_name} nosuperuser nocreaterole noreplication; drop owned by {quoted_name}")
    for one in ("pg_read_all_data", "pg_write_all_data", "pg_monitor", "pg_signal_backend"):
        queue.run(f"revoke {one} from {quoted_name}")
    confine(queue, stranger, "acme")
    assert stranger.ask("select outcome from lonnymq.tenant_create('acme', 'x')") == "created"


def test_names_that_look_alike_are_other_channels(tenant: Tenant) -> None:
    acme = tenant("caf\u00e9", "k", prefix="caf\u00e9/")
    for channel in ("caf\u00e9", "k", "caf\u00e9/\u0130"):
        assert acme.ask("select outcome from tenant_create(%s, 'x')", channel) == "created"
    alike = (
        *("cafe\u0301", "cafe", "CAF\u00c9", "caf\u00e9 ", "\ufeffcaf\u00e9", "caf\u00e9\u200b", "\u212a"),
        *(
            "cafe\u0301/x",
            "caf\u00e9\uff0fx",
            "caf\u00e9\u2215x",
            "caf\u00e9\\/x",
            "caf\u00e9/\x7f",
            "caf_/x",
        ),
        *("%", "caf%", "_"),
    )
    for channel in alike:
        with pytest.raises(psycopg.Error) as raised:
            acme.run("select tenant_create(%s, 'x')", channel)
        assert raised.value.sqlstate in (DENIED.sqlstate, "LQ001"), channel
