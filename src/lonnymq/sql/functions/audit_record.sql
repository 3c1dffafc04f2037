-- audit_record: record an action in the transaction that does it, so that there is no action without its record and no
-- record of an action that was rolled back. Record no contents: every reader may see this.
--   p_actor      who acts, such as the name of a dashboard's user; the database role is recorded too
--   p_verb       what is done, as the function that does it: 'channel_pause'
--   p_subject    to which channel, message, cron or worker; null: to several or to none
--   p_arguments  how, as a JSON object of at most 8192 bytes
--   p_outcomes   how many of which outcome, as a JSON object of numbers: {"redriven": 8, "duplicate": 1}
-- Only the newest 100,000 records are kept: each call deletes up to ten older ones.
-- Returns the id of the record.
-- Locks:  the records to delete, skipping locked ones.
-- Writes: audit.
create or replace function audit_record(
  p_actor text, p_verb text, p_subject text default null, p_arguments jsonb default '{}', p_outcomes jsonb default '{}'
) returns bigint
language plpgsql security definer
set search_path from current
as $$
declare
  c_kept constant bigint := 100000;
  v_id bigint;
  v_expired tid[];
begin
  if p_actor is null or length(p_actor) not between 1 and 255 then
    perform reject('actor', quote_literal(p_actor), '1 to 255 characters');
  elsif p_verb is null or length(p_verb) not between 1 and 100 then
    perform reject('verb', quote_literal(p_verb), '1 to 100 characters');
  elsif length(p_subject) > 255 then
    perform reject('subject', quote_literal(p_subject), 'at most 255 characters');
  elsif p_arguments is null or jsonb_typeof(p_arguments) <> 'object' or octet_length(p_arguments::text) > 8192 then
    perform reject('arguments', p_arguments::text, 'a JSON object of at most 8192 bytes');
  elsif p_outcomes is null or jsonb_typeof(p_outcomes) <> 'object' or octet_length(p_outcomes::text) > 1000
      or exists (select from jsonb_each(p_outcomes) o where jsonb_typeof(o.value) <> 'number') then
    perform reject('outcomes', p_outcomes::text, 'a JSON object of numbers, of at most 1000 bytes');
  end if;
  insert into audit (acted_at, actor, role, verb, subject, arguments, outcomes)
  values (clock_timestamp(), p_actor, caller_role(), p_verb, p_subject, p_arguments, p_outcomes)
  returning id into v_id;
  select array_agg(s.ctid) into v_expired from (
    select a.ctid from audit a where a.id <= v_id - c_kept order by a.id limit 10 for update skip locked
  ) s;
  delete from audit a where a.ctid = any(v_expired);
  return v_id;
end
$$;
