-- privileges: what this role may do with the queue in the schema named by the setting lonnymq.schema.
select n.oid is not null as is_there, coalesce(pg_has_role(current_user, n.nspowner, 'usage'), false) as is_owner,
  coalesce(array(
    select distinct p.proname::text from pg_proc p
    where p.pronamespace = n.oid and has_schema_privilege(n.oid, 'usage') and has_function_privilege(p.oid, 'execute')
      and p.proname in ('message_create', 'message_dequeue', 'channel_set', 'queue_pulse', 'queue_check')
  ), '{}') as functions,
  coalesce(array(
    select c.relname::text from pg_class c
    where c.relnamespace = n.oid and has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
      and c.relname = 'channel_status'
  ), '{}') as views
from (select current_setting('lonnymq.schema') as name) s
left join pg_namespace n on n.nspname = s.name;
