-- guard: for scripts: stop if other roles could run code here with the rights of the role that runs the script. The
-- client fills in the query of trust.sql.
do $guard$
declare
  v_trust record;
begin
  select * into v_trust from (
{trust}
  ) t;
  if v_trust.owner <> v_trust.role or v_trust.creators <> '{}' or v_trust.unsafe_objects <> '{}' then
    raise exception 'other roles can run code in this schema with the rights of its owner: %',
      to_jsonb(v_trust) - 'objects'
      using hint = 'Run this as the owner, revoke CREATE from the other roles, and drop their objects.';
  end if;
end
$guard$;
