-- dead_page: a page of dead letters, those buried last first: of one channel or all, and only those whose error_line
-- is p_error ('': those without an error).
-- p_before_at, p_before_id: next_at and next_id of the page before; null for the first one.
-- Returns the ids of at most p_limit dead letters, and where the next page begins; null: there is none. It looks at
-- no more than 10,000 dead letters that do not match, so a page may hold fewer than p_limit and still not be the
-- last one. read_at is when it was read: pass it to dead_redrive or dead_purge as p_before.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function dead_page(
  p_channel text default null, p_error text default null, p_before_id bigint default null,
  p_before_at bigint default null, p_limit integer default 100,
  out ids bigint[], out next_id bigint, out next_at bigint, out read_at timestamptz
)
language plpgsql stable security definer
set search_path from current
as $$
declare
  v_before_id constant bigint := coalesce(p_before_id, 9223372036854775807);
  v_before_at constant bigint := coalesce(p_before_at, 9223372036854775807);
  v_letter record;
  v_seen integer := 0;
begin
  read_at := clock_timestamp();
  perform require_batch(p_limit);
  if p_channel is not null then
    perform require_channel(p_channel);
  end if;
  if (p_before_id is null) <> (p_before_at is null) then
    perform reject('before_at', p_before_at::text, 'given together with before_id');
  end if;
  ids := '{}';
  for v_letter in
    select d.message_id, d.buried_at, p_error is null or d.error_line = p_error as does_match
    from (
      (
        select d.message_id, d.buried_at, d.error_line from dead d
        where p_channel is null and (d.buried_at, d.message_id) < (v_before_at, v_before_id)
        order by d.buried_at desc, d.message_id desc limit p_limit + 10001
      )
      union all
      (
        select d.message_id, d.buried_at, d.error_line from dead d
        where d.channel = p_channel and (d.buried_at, d.message_id) < (v_before_at, v_before_id)
        order by d.channel desc, d.buried_at desc, d.message_id desc limit p_limit + 10001
      )
    ) d
  loop
    if cardinality(ids) = p_limit or v_seen - cardinality(ids) = 10000 then
      return;  -- next_id and next_at are those of the dead letter before
    end if;
    v_seen := v_seen + 1;
    if v_letter.does_match then
      ids := ids || v_letter.message_id;
    end if;
    next_id := v_letter.message_id;
    next_at := v_letter.buried_at;
  end loop;
  next_id := null;
  next_at := null;
end
$$;
