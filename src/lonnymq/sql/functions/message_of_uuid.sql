-- message_of_uuid: the id of the message with a uuid (see message_uuid), live or not; null if this queue did not make
-- the uuid.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_of_uuid(p_uuid uuid) returns bigint
language plpgsql stable security definer
set search_path from current
as $$
declare
  v_tag constant bytea := substr(uuid_send(p_uuid), 1, 8);
  v_salt bytea;
  v_id bigint;
begin
  if p_uuid is null then
    return null;
  end if;
  select s.salt into v_salt from setting s where s.is_only;
  v_id := ('x' || encode(substr(uuid_send(p_uuid), 9, 8), 'hex'))::bit(64)::bigint # message_uuid_mask(v_salt, v_tag);
  return case when message_uuid(v_id) = p_uuid then v_id end;
end
$$;
