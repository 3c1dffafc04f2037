"""The splitter finds the statements of plpgsql, and the instrument inserts yield points before them."""

from lonnymq.schema import files
from lonnymq.schema.files import File
from tests.interleavings.instrument import FUNCTION, Instrument
from tests.interleavings.statements import statements, tokens

BODY = """
#variable_conflict use_column
declare
  v_count integer := 1;  -- a comment; with a semicolon
begin
  if v_count = case when true then 1 else 2 end then
    perform 'a; text', $x$ begin; $x$;
  elsif not exists (select from message) then
    raise notice 'else';
  else
    for v_count in select 1 loop
      exit when v_count = (select case when true then 3 end);
    end loop;
  end if;
  begin
    v_count := 2;
  exception when lock_not_available then
    return;
  end;
end
"""
LOCKING = """create or replace function sample() returns void
language plpgsql
as $$
begin
  perform from message m where m.id = 1 or m.id in (select l.message_id from lease l where true) for update;
  delete from wake w where w.id = 1;
  insert into channel (id) values (1) on conflict do update set name = 'x' where false;
  perform 1;
end
$$;
"""


def test_a_body_is_split_into_its_statements() -> None:
    assert [" ".join(one.text.split()) for one in statements(BODY)] == [
        "declare v_count integer := 1; -- a comment; with a semicolon",
        "if v_count = case when true then 1 else 2 end",
        "perform 'a; text', $x$ begin; $x$",
        "elsif not exists (select from message)",
        "raise notice 'else'",
        "for v_count in select 1",
        "exit when v_count = (select case when true then 3 end)",
        "v_count := 2",
        "when lock_not_available",
        "return",
    ]


def test_no_text_of_the_queues_functions_is_lost() -> None:
    for file in files.functions_and_views():
        function = FUNCTION.search(file.text)
        if function and function["language"] == "plpgsql":
            found = list(statements(function["body"]))
            ends = [0, *(one.end for one in found)]
            between = [
                function["body"][end : one.start] for end, one in zip(ends, [*found], strict=False)
            ] + [function["body"][ends[-1] :]]
            words = {token.text for text in between for token in tokens(text)}
            assert words <= {";", "begin", "then", "else", "loop", "end", "if", "exception", "#"} | {
                "variable_conflict",
                "use_column",
                "case",
            }, file.path


def test_yield_points_are_before_statements_and_after_the_snapshots_of_those_that_lock() -> None:
    instrument = Instrument()
    lines = instrument.rewrite(File("functions/sample.sql", LOCKING)).splitlines()[4:]
    assert lines[:4] == [
        "  assert interleavings.yield_at(0); perform from message m where (select interleavings.yield_at(1))"
        " and  m.id = 1 or m.id in (select l.message_id from lease l where true) for update;",
        "  assert interleavings.yield_at(2); delete from wake w where (select interleavings.yield_at(3))"
        " and  w.id = 1;",
        "  assert interleavings.yield_at(4); insert into channel (id) values (1) on conflict do update"
        " set name = 'x' where false;",
        "  perform 1;",
    ]
    assert instrument.points[0].changed == {"message", "lease"}
    assert instrument.points[2].label == "sample:6 delete from wake w where w.id = 1"


def test_a_statement_uses_the_tables_of_functions_that_have_no_yield_points() -> None:
    instrument = Instrument()
    for file in files.functions_and_views():
        instrument.rewrite(file)
    (point,) = [one for one in instrument.points if " v_inserted := case when " in one.label]
    assert {"turn", "creation_lock"} <= point.used
    assert "creation_lock" in point.changed
