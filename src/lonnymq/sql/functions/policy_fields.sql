-- policy_fields: the fields of a channel's policy, the lowest and the highest value of each as a JSON array, and
-- whether a channel may lift it. The fields are the columns of channel except the first three; their ranges are its
-- check constraints.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function policy_fields() returns table (name text, range jsonb, can_be_lifted boolean)
language sql stable
set search_path from current
as $$
  select a.attname::text, case a.atttypid
    when 'boolean'::regtype then '[false, true]'::jsonb
    -- PostgreSQL shows both forms, "x >= 1" and "x between 1 and 9", with >= and <=.
    else jsonb_build_array(substring(k.definition from '>= ''?([0-9]+)')::bigint,
      coalesce(substring(k.definition from '<= ''?([0-9]+)')::bigint,
        case a.atttypid when 'integer'::regtype then 2147483647 else 9223372036854775807 end))
    end, coalesce(k.definition like '%-1%', false)
  from pg_attribute a
  cross join lateral (
    select string_agg(pg_get_constraintdef(c.oid), ' ') as definition
    from pg_constraint c where c.conrelid = a.attrelid and c.contype = 'c' and c.conkey = array[a.attnum]
  ) k
  where a.attrelid = 'channel'::regclass and a.attnum > 3 and not a.attisdropped
$$;
