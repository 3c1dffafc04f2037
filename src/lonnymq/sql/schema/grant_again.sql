-- grant_again: give each role what this version adds to the kinds of queue_grant that it had (see
-- existing_objects.sql).
do $$
declare
  v_one record;
begin
  for v_one in
    select k.role, k.kind
    from jsonb_to_recordset(current_setting('lonnymq.existing_kinds')::jsonb) k(role text, kind text)
    where k.kind in (select r.kind from kind_rights() r)
    order by 1, 2
  loop
    perform kind_grant(v_one.role, v_one.kind);
  end loop;
end
$$;
