-- queue_pulse: the figures to watch a queue by, at a cost that does not depend on its size.
-- p_channels: how many channels that are due to look at.
-- Returns, among others:
--   due_channels, demand     channels that have a message to release now, and how many messages workers could
--                            get now, within caps and rate limits; is_due_complete is false if there are more
--                            than were looked at
--   turn_lag_s, first_due_at how long the one that waits longest has been due, and since when; 0 and null if none is
--   expired, sleepers        at most 1,000 are counted
--   is_exact                 the counts are exact. Otherwise the tables are large, and the counts of their rows are
--                            PostgreSQL's estimates, which lag by about a second
--   *_total                  as queue_activity
-- Locks:  nothing.
-- Writes: nothing.
create or replace function queue_pulse(
  p_channels integer default 100,
  out at timestamptz, out due_channels bigint, out demand bigint, out is_due_complete boolean, out turn_lag_s float8,
  out first_due_at timestamptz, out first_expiry_at timestamptz, out expired bigint, out sleepers bigint,
  out channels bigint, out waiting bigint, out scheduled bigint, out leased bigint, out dead bigint,
  out unfolded_wakes bigint, out history_overflow bigint, out is_exact boolean,
  out created_total bigint, out leased_total bigint, out ended_total bigint,
  out history text, out oldest_transaction_s float8, out version integer
)
language plpgsql stable security definer
set search_path from current
set enable_bitmapscan = off
set enable_indexonlyscan = off
set jit = off
as $$
declare
  c_pages constant integer := 64;
  v_now constant bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
  v_messages bigint;
  v_sampled bigint;
begin
  perform require_batch(p_channels);
  at := clock_timestamp();
  select count(*), coalesce(sum(d.demand), 0), bool_or(d.has_more) is not true,
    coalesce(greatest(v_now - min(d.due_at), 0) / 1000000.0, 0), from_epoch(min(d.due_at) / 1000)
  into due_channels, demand, is_due_complete, turn_lag_s, first_due_at
  from channel_due(p_channels) d;

  sleepers := (select count(distinct s.worker)
    from (select s.worker from sleeper s where s.until > v_now order by s.until desc limit 1000) s);

  -- A table of few pages is counted.
  select coalesce(sum(s.messages), 0), coalesce(sum(s.scheduled), 0) into v_sampled, scheduled
  from message_sample(c_pages) s;
  v_messages := v_sampled;
  is_exact := true;
  if table_pages('message') > c_pages then
    v_messages := table_estimate('message');
    scheduled := v_messages * scheduled / greatest(v_sampled, 1);
    is_exact := false;
  end if;
  if lease_index_is_cheap(c_pages) then
    first_expiry_at := (select from_epoch(l.unlock_at / 1000) from lease l order by l.unlock_at limit 1);
    expired := (select count(*) from (select from lease l where l.unlock_at < v_now order by l.unlock_at limit 1000) l);
    leased := table_estimate('lease');
    is_exact := false;
  else
    -- Not min(l.unlock_at), which would step over all dead entries of the index.
    select count(*), least(count(*) filter (where l.unlock_at < v_now), 1000), from_epoch(min(l.unlock_at + 0) / 1000)
    into leased, expired, first_expiry_at
    from lease l;
  end if;
  -- A lease whose message was cancelled makes it one too small, hence the 0.
  waiting := greatest(0, v_messages - leased);
  if table_pages('dead') > c_pages then
    dead := table_estimate('dead');
    is_exact := false;
  else
    dead := (select count(*) from dead);
  end if;
  if table_pages('wake') > c_pages then
    unfolded_wakes := table_estimate('wake');
    is_exact := false;
  else
    unfolded_wakes := (select count(*) from wake);
  end if;
  if table_pages('channel') > c_pages or table_pages('wake') > c_pages then
    channels := table_estimate('channel');
    is_exact := false;
  else
    channels := (select count(*) from channel)
      -- A channel that no dequeue has seen yet is known only by its wakes.
      + (select count(distinct w.channel_id) from wake w
        where w.channel_name is not null and not exists (select from channel c where c.id = w.channel_id));
  end if;
  if table_pages('history_overflow') > c_pages then
    history_overflow := table_estimate('history_overflow');
    is_exact := false;
  else
    history_overflow := (select count(*) from history_overflow);
  end if;

  select a.created, a.leased, a.ended into created_total, leased_total, ended_total from queue_activity() a;
  history := (select s.history from setting s);
  oldest_transaction_s := (
    select max(extract(epoch from clock_timestamp() - a.xact_start))::float8
    from pg_stat_activity a where a.datname = current_database()
  );
  version := (select max(m.version) from migration m);
end
$$;
