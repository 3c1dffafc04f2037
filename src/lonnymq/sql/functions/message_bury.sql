-- message_bury: make dead letters of messages that must not be tried again, with an error (the first 20,000 characters
-- are kept).
-- Returns per message, in the order given: 'buried', or as message_complete.
-- Locks:  its own leases and messages, skipping locked ones.
-- Writes: lease, message (delete), dead, history, wake (insert).
create or replace function message_bury(p_ids bigint[], p_tokens bigint[], p_errors text[] default null)
returns table (message_id bigint, outcome text)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_leases tid[];
  v_messages tid[];
  v_ordinals integer[];
  v_outcomes text[];
  -- The caller's array may begin at any index, and have any dimensions.
  v_given constant text[] := array(select unnest(p_errors));
  v_errors text[];
  v_ended integer;
begin
  perform require_length('errors', cardinality(p_errors), cardinality(p_ids));
  select * into v_leases, v_messages, v_ordinals, v_outcomes from lease_lock(p_ids, p_tokens, true);
  if v_leases is not null then
    v_errors := array(select left(v_given[o], 20000) from unnest(v_ordinals) o);
    perform history_record(v_leases, v_messages, 'buried', v_errors);
    perform dead_insert(v_messages, v_errors);
    v_ended := lease_end(v_leases);
  end if;
  return query
  select u.id, coalesce(v_outcomes[u.ordinal], 'buried') from unnest(p_ids) with ordinality u(id, ordinal);
end
$$;
