-- tenant_create_many: message_create_many for a tenant, in its channels only.
-- Returns per message, in the order given, as tenant_create.
-- Locks:  as tenant_create; channels are locked in the order of their names, so that two calls cannot deadlock.
-- Writes: message, wake (insert), tenant_channel.
create or replace function tenant_create_many(
  p_channels text[], p_contents bytea[], p_dequeue_ats bigint[] default null, p_delays_ms bigint[] default null,
  p_keys text[] default null, p_max_attempts integer[] default null, p_headers jsonb[] default null
) returns table (ordinal integer, outcome text, message_uuid uuid)
language plpgsql security definer
set search_path from current
as $$
declare
  v_channel text;
  v_max_attempts integer;
begin
  if cardinality(p_channels) > 100000 then
    perform reject('channels', cardinality(p_channels) || ' elements', 'at most 100000 elements');
  end if;
  for v_channel, v_max_attempts in
    select u.channel collate "C", max(u.max_attempts) from unnest(p_channels, p_max_attempts) u(channel, max_attempts)
    where u.channel is not null
    group by u.channel collate "C" order by u.channel collate "C"
  loop
    perform tenant_enter(v_channel, v_max_attempts);
  end loop;
  if p_headers is not null then
    perform tenant_require_headers(u.channel, u.headers) from unnest(p_channels, p_headers) u(channel, headers)
    where u.headers is not null;
  end if;
  return query
  select c.ordinal, c.outcome, message_uuid(c.message_id)
  from message_create_many(p_channels collate "default", p_contents, p_dequeue_ats, p_delays_ms,
    p_keys collate "default", p_max_attempts, p_headers) c;
end
$$;
