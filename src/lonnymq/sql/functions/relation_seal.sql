-- relation_seal: revoke all privileges on a new table from everybody but its owner, because the owner's default
-- privileges may have granted some; and that of PUBLIC to use its row type (see queue_seal).
-- Locks:  nothing.
-- Writes: privileges.
create or replace function relation_seal(p_relation regclass) returns void
language plpgsql
set search_path from current
as $$
declare
  v_grantee text;
begin
  for v_grantee in
    select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
    from pg_class c
    cross join aclexplode(c.relacl) a
    where c.oid = p_relation and a.grantee <> c.relowner
  loop
    execute format('revoke all on %s from %s cascade', p_relation, v_grantee);
  end loop;
  execute format('revoke usage on type %s from public', p_relation);
end
$$;
