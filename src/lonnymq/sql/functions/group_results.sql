-- group_results: what has become of the members of a group, for the holder of its callback: the columns are those of
-- message_status_of, the rows in the order of the members. Raises LQ001 if their results are larger than p_max_bytes.
-- Returns nothing if this is not the callback of a group, if the token is not that of its lease, or if the group has
-- expired with its results.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function group_results(p_message_id bigint, p_token bigint, p_max_bytes bigint default 16777216)
returns table (
  message_id bigint, status text, attempt integer, worker text, at bigint, error text, content bytea, progress real,
  progress_note text
)
language plpgsql stable security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_members constant bigint[] := (
    select g.members from message_group g
    where g.callback_id = p_message_id
      and (select true from lease l where l.message_id = p_message_id and l.token = p_token)
  );
  v_bytes bigint;
begin
  if v_members is null then
    return;
  end if;
  select sum(octet_length(r.content)) into v_bytes
  from unnest(v_members) u(id)
  cross join lateral (select r.content from result r where r.message_id = u.id offset 0) r;
  if v_bytes > p_max_bytes then
    perform reject('results', v_bytes || ' bytes', format('at most %s bytes together', p_max_bytes));
  end if;
  return query select s.* from message_status_of(v_members) s;
end
$$;
