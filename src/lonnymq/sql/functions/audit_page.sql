-- audit_page: records of actions (see audit_record), newest first: all, or those of one actor or about one subject.
-- p_before_id: the id of the last record of the page before; null for the first page. At most 100,000 records exist,
-- so that is the most that a page reads.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function audit_page(
  p_actor text default null, p_subject text default null, p_before_id bigint default null, p_limit integer default 100
) returns table (
  id bigint, acted_at timestamptz, actor text, role text, verb text, subject text, arguments jsonb, outcomes jsonb
)
language plpgsql stable security definer
set search_path from current
as $$
begin
  perform require_batch(p_limit);
  return query
  select a.id, a.acted_at, a.actor, a.role, a.verb, a.subject, a.arguments, a.outcomes
  from audit a
  where a.id < coalesce(p_before_id, 9223372036854775807)
    and (p_actor is null or a.actor = p_actor) and (p_subject is null or a.subject = p_subject)
  order by a.id desc limit p_limit;
end
$$;
