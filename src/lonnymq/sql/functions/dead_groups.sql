-- dead_groups: the dead letters that were buried last, at most p_letters of one channel or all, grouped by the line
-- that names their error (see the table dead; '' for those without an error), the largest groups first.
-- Returns per group how many there are, in how many channels, when the first and the last of them were buried, and
-- the id of the last. is_complete: the groups are of all dead letters there are.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function dead_groups(
  p_channel text default null, p_limit integer default 100, p_letters integer default 10000
) returns table (
  error text, letters bigint, channels bigint, first_at bigint, last_at bigint, last_id bigint, is_complete boolean
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  perform require_batch(p_letters);
  if p_channel is not null then
    perform require_channel(p_channel);
  end if;
  return query
  with newest as materialized (
    (
      select d.message_id, d.channel, d.buried_at, d.error_line from dead d
      where p_channel is null order by d.buried_at desc, d.message_id desc limit p_letters + 1
    )
    union all
    (
      select d.message_id, d.channel, d.buried_at, d.error_line from dead d
      where d.channel = p_channel order by d.channel desc, d.buried_at desc, d.message_id desc limit p_letters + 1
    )
  )
  select n.error_line, count(*), count(distinct n.channel), min(n.buried_at), max(n.buried_at),
    max(n.message_id), (select count(*) from newest) <= p_letters
  from (select * from newest n order by n.buried_at desc, n.message_id desc limit p_letters) n
  group by 1
  order by 2 desc, 5 desc
  limit p_limit;
end
$$;
