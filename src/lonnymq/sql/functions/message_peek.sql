-- message_peek: the next messages of a channel in the order of their release, or of all channels by id; with
-- p_is_leased the leased messages, the longest leased first. Leases nothing.
-- Returns rows as message_show, which explains p_preview_bytes.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_peek(
  p_channel text default null, p_limit integer default 10, p_is_leased boolean default false,
  p_preview_bytes integer default 1000
)
returns table (
  message_id bigint, channel text, key text, status text, dequeue_at bigint, created_at bigint, attempts integer,
  max_attempts integer, suspicion smallint, error text, worker text, leased_at bigint, unlock_at bigint,
  content_bytes integer, content bytea, state bytea, headers jsonb
)
language plpgsql stable security definer
set search_path from current
as $$
declare
  v_channel_id bigint;
  v_ids bigint[];
begin
  perform require_batch(p_limit);
  if p_channel is not null then
    perform require_channel(p_channel);
    v_channel_id := (select channel_id(s.salt, p_channel) from setting s where s.is_only);
  end if;
  if p_is_leased and lease_index_is_cheap(1000) then
    v_ids := array(
      select l.message_id from lease l
      where l.unlock_at > 0 and (v_channel_id is null or l.channel_id = v_channel_id)
        and (select true from message m where m.id = l.message_id)
      order by l.leased_at, l.message_id limit p_limit
    );
  elsif p_is_leased then
    v_ids := array(
      select l.message_id from lease l
      where (v_channel_id is null or l.channel_id = v_channel_id)
        and (select true from message m where m.id = l.message_id)
      order by l.leased_at, l.message_id limit p_limit
    );
  elsif p_channel is null then
    v_ids := array(
      select m.id from message m
      where (select true from lease l where l.message_id = m.id) is null
      order by m.id limit p_limit
    );
  else
    v_ids := array(
      select m.id from message m
      where m.channel_id = v_channel_id and (select true from lease l where l.message_id = m.id) is null
      order by m.dequeue_at, m.id + 0 limit p_limit
    );
  end if;
  return query select s.* from message_show(v_ids, p_preview_bytes) s;
end
$$;
