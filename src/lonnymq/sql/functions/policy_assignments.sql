-- policy_assignments: check the fields of a policy that a caller wants to change, and write them as the assignments of
-- an update; null if there are none. p_is_default: it is the queue's default policy, which cannot pause channels, and
-- has no limits to lift.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function policy_assignments(p_name text, p_policy jsonb, p_is_default boolean) returns text
language plpgsql stable
set search_path from current
as $$
declare
  v_key text;
  v_value jsonb;
  v_field record;
begin
  if p_policy is null or jsonb_typeof(p_policy) <> 'object' then
    perform reject(p_name, p_policy::text, 'a JSON object');
  end if;
  for v_key, v_value in select * from jsonb_each(p_policy) loop
    select f.range, f.can_be_lifted and not p_is_default as can_be_lifted, jsonb_typeof(f.range -> 0) as type
    into v_field
    from policy_fields() f where f.name = v_key and not (p_is_default and jsonb_typeof(f.range -> 0) = 'boolean');
    if v_field.range is null then
      perform reject(p_name, v_key, format('limited to the fields %s', (
        select string_agg(f.name, ', ' order by f.name) from policy_fields() f
        where not (p_is_default and jsonb_typeof(f.range -> 0) = 'boolean')
      )));
    elsif v_field.type = 'boolean' then
      if jsonb_typeof(v_value) not in ('boolean', 'null') then
        perform reject(v_key, v_value::text, 'true, false or null');
      end if;
    elsif jsonb_typeof(v_value) <> 'null' and (v_value <> '"none"' or not v_field.can_be_lifted)
        and (jsonb_typeof(v_value) <> 'number' or v_value::numeric % 1 <> 0
          or v_value::numeric not between (v_field.range -> 0)::numeric and (v_field.range -> 1)::numeric) then
      perform reject(v_key, v_value::text, format('a whole number between %s and %s%s', v_field.range -> 0,
        v_field.range -> 1, case when v_field.can_be_lifted then ', "none" or null' else ', or null' end));
    end if;
  end loop;
  -- The names and values have been checked: each value is now a whole number, true, false, null or "none".
  return (
    select string_agg(format('%I = %s', f.key, case jsonb_typeof(f.value) when 'null' then 'default'
      when 'number' then f.value::bigint::text when 'string' then '-1' else f.value::text end), ', ')
    from jsonb_each(p_policy) f
  );
end
$$;
