-- lock: until the transaction ends, nobody else installs, migrates or uninstalls the queue in the schema that the setting
-- lonnymq.examined names. To comment on a schema, here with the comment that it has, locks it, and takes its owner: of an
-- advisory lock anybody could take hold, and keep everybody waiting. The schema may be gone when the wait is over.
do $$
declare
  v_schema constant text := current_setting('lonnymq.examined');
begin
  execute format('comment on schema %I is %L', v_schema,
    (select obj_description(n.oid, 'pg_namespace') from pg_namespace n where n.nspname = v_schema));
exception when invalid_schema_name then
  null;
end
$$;
