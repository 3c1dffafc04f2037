-- create: create the schema that the setting lonnymq.schema names, if it does not exist, and revoke what default
-- privileges have granted on it to others. If two transactions do this at once, the second waits and then finds the
-- schema of the first.
do $$
declare
  v_schema constant text := current_setting('lonnymq.schema');
  v_grantee text;
begin
  if exists (select from pg_namespace n where n.nspname = v_schema) then
    return;
  end if;
  execute format('create schema %I', v_schema);
  for v_grantee in
    select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
    from pg_namespace n
    cross join aclexplode(n.nspacl) a
    where n.nspname = v_schema and a.grantee <> n.nspowner
  loop
    execute format('revoke all on schema %I from %s cascade', v_schema, v_grantee);
  end loop;
exception when duplicate_schema or unique_violation then
  null;
end
$$;
