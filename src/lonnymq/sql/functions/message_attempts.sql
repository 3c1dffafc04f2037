-- message_attempts: the attempts of a message that history has recorded, the latest first, at most p_limit. History has
-- no index by message, so only the p_rows attempts that were recorded last are searched, whatever message they are of.
-- searched_from: when the oldest of these ended (milliseconds; null: history is empty). is_complete: all of history was
-- searched, or all of it since the message was created, and no more than p_limit attempts were found.
-- Returns a row per attempt; if none is found, one row with only the first two columns.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_attempts(
  p_id bigint, p_rows integer default 10000, p_limit integer default 100
)
returns table (
  searched_from bigint, is_complete boolean, outcome text, attempt integer, leased_at bigint, ended_at bigint,
  worker text, error text
)
language plpgsql stable security definer
set search_path from current
as $$
declare
  v_created_at bigint;
begin
  perform require_batch(p_rows);
  perform require_batch(p_limit);
  if p_id is null then
    perform reject('id', null, 'a message id');
  end if;
  v_created_at := coalesce((select m.created_at from message m where m.id = p_id),
    (select d.created_at from dead d where d.message_id = p_id));
  return query
  with newest as materialized (
    select h.message_id, h.outcome, h.attempt, h.created_at, h.leased_at, h.ended_at, h.worker, h.error
    from history h order by h.xid desc, h.id desc limit p_rows
  )
  select s.searched_from,
    s.attempts <= p_limit
      and (s.rows < p_rows or coalesce(s.searched_from < coalesce(s.created_at, v_created_at), false)),
    n.outcome, n.attempt, n.leased_at, n.ended_at, n.worker, n.error
  from (
    select min(n.ended_at) as searched_from, count(*) as rows, count(*) filter (where n.message_id = p_id) as attempts,
      min(n.created_at) filter (where n.message_id = p_id) as created_at
    from newest n
  ) s
  left join (
    select * from newest n where n.message_id = p_id order by n.ended_at desc, n.attempt desc limit p_limit
  ) n on true
  order by n.ended_at desc, n.attempt desc;
end
$$;
