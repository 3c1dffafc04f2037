-- require_cron_instant: raise unless every client can represent an instant of a cron. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_cron_instant(p_argument text, p_at timestamptz) returns void
language plpgsql immutable
as $$
begin
  -- The same range as in the table. It also excludes infinity.
  if p_at is null or p_at not between '1970-01-01 00:00:00+00'::timestamptz
    and '9000-01-01 00:00:00+00'::timestamptz then
    perform reject(p_argument, p_at::text, 'a timestamp between 1970 and 9000');
  end if;
end
$$;
