-- turn_release_at: when the next message could be released if releases were evenly spaced; null without a rate limit.
-- Never before p_now. Never more than a burst after the last release either, because the limit may have been changed or
-- the clock set back. Pure; inlined.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_release_at(p_release_at bigint, p_last_at bigint, p_burst_us bigint, p_now bigint)
returns bigint
language sql immutable
as $$
  select case when p_burst_us is not null
    then greatest(p_now, least(p_release_at, least(p_last_at, p_now) + p_burst_us)) end
$$;
