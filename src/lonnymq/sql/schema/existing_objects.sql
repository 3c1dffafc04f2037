-- existing_objects: before a migration, note the objects that exist: on these, roles keep what queue_grant gave them
-- (see queue_seal).
do $$
declare
  v_schema constant oid := (select n.oid from pg_namespace n where n.nspname = current_schema());
begin
  perform set_config('lonnymq.existing_objects', array(
    select 'n' || v_schema
    union all select 'c' || c.oid from pg_class c where c.relnamespace = v_schema
    union all select 'p' || p.oid from pg_proc p where p.pronamespace = v_schema
  )::text, true);
end
$$;
