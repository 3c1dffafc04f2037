-- acknowledgements: the names of the functions message_* that end or extend attempts. They take ids and tokens and
-- answer with an outcome per message; by this they are known to kind_rights and plans.sql.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function acknowledgements() returns text[]
language sql stable
set search_path from current
as $$
  select array_agg(p.proname::text order by p.proname)
  from pg_proc p
  where p.pronamespace = (select c.relnamespace from pg_class c where c.oid = 'turn'::regclass)
    and starts_with(p.proname::text, 'message_') and p.proargnames[1:2] = '{p_ids, p_tokens}'
    and p.proargnames @> '{message_id, outcome}'
$$;
