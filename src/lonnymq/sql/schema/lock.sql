-- lock: until the transaction ends, prevent others from installing, migrating or uninstalling the queue in the schema
-- that the setting lonnymq.schema names. COMMENT ON SCHEMA, here with the comment that the schema has, locks it, and
-- only its owner may do that; any role could take an advisory lock and block the owner. The schema may be gone when the
-- lock is granted.
do $$
declare
  v_schema constant text := current_setting('lonnymq.schema');
begin
  execute format('comment on schema %I is %L', v_schema,
    (select obj_description(n.oid, 'pg_namespace') from pg_namespace n where n.nspname = v_schema));
exception when invalid_schema_name then
  null;
end
$$;
