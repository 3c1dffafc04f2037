-- message_cancel_key: message_cancel for the live message of a channel that has the given key.
-- Returns one row, as message_cancel.
-- Locks:  the message, skipping a locked one.
-- Writes: message (delete), wake, history (insert).
create or replace function message_cancel_key(p_channel text, p_key text, out message_id bigint, out outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_id bigint;
  v_channel_id bigint;
begin
  perform require_channel(p_channel);
  if p_key is null then
    perform reject('key', null, '1 to 255 characters');
  end if;
  select channel_id(s.salt, p_channel) into v_channel_id from setting s where s.is_only;
  select m.id into v_id from message m where m.channel_id = v_channel_id and m.key = p_key;
  outcome := 'unknown';
  if v_id is not null then
    select c.message_id, c.outcome into message_id, outcome from message_cancel(array[v_id]) c;
  end if;
end
$$;
