-- message_uuid: what a tenant sees in place of a message's id. Ids count the messages of all tenants; of uuids, nobody
-- who does not know the salt can tell which came first, or make one. The first half is a keyed hash of the id, the
-- second half is the id, encrypted with a keyed hash of the first half. So nothing is stored, and the same message
-- always has the same uuid.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_uuid(p_id bigint) returns uuid
language plpgsql stable
as $$
declare
  v_salt bytea;
  v_tag bytea;
begin
  if p_id is null then
    return null;
  end if;
  select s.salt into v_salt from setting s where s.is_only;
  v_tag := substr(sha256('uuid tag' || v_salt || int8send(p_id)), 1, 8);
  return encode(v_tag || int8send(p_id # message_uuid_mask(v_salt, v_tag)), 'hex')::uuid;
end
$$;
