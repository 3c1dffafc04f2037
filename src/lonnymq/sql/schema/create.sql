-- create: make the schema that the setting lonnymq.examined names, unless it is there, for its owner alone, whatever default
-- privileges say. Of two who do so at once, the second one waits and then finds the first one's.
do $$
declare
  v_schema constant text := current_setting('lonnymq.examined');
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
