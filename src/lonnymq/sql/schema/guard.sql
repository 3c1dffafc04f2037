-- guard: for scripts: stop where others can have code run with the rights of whoever runs this; the question is that of
-- trust.sql, which the client fills in.
do $guard$
declare
  v_trust record;
begin
  select * into v_trust from (
{trust}
  ) t;
  if v_trust.owner <> v_trust.role or v_trust.creators <> '{}' or v_trust.strangers <> '{}' then
    raise exception 'others can have code run in this schema: %', to_jsonb(v_trust) - 'objects'
      using hint = 'Run this as the owner, revoke CREATE from others, and drop what they have left.';
  end if;
end
$guard$;
