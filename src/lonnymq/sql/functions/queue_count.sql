-- queue_count: exact counts of the queue, as queue_status takes them, but not too often: a new count is taken only if
-- 40 times as long as the last one took has passed since that began, and at least a second; by one session at a time.
-- Otherwise the last counts are returned, with their age. A count that statement_timeout cancels is one that was taken,
-- so that the next attempt is as far away: set a statement_timeout, and call this in the background.
-- Without p_may_count, and in a read-only transaction, it only returns what is known.
-- Returns null counts if none has succeeded yet.
-- Locks:  the row of the last count, unless another session counts at this moment.
-- Writes: exact_count.
create or replace function queue_count(
  p_may_count boolean default true,
  out channels bigint, out waiting bigint, out leased bigint, out dead bigint, out unfolded_wakes bigint,
  out history_overflow bigint, out counted_at timestamptz, out age_s float8, out took_ms bigint
)
language plpgsql security definer
set search_path from current
as $$
declare
  v_begun_at timestamptz;
  v_last exact_count;
  v_counts jsonb;
begin
  if p_may_count and current_setting('transaction_read_only') = 'off' then
    select * into v_last from exact_count c where c.is_only for update skip locked;
    v_begun_at := clock_timestamp();
    if found and coalesce(
      v_begun_at > v_last.begun_at + greatest(1000, 40 * v_last.took_ms) * interval '1 ms'
        or v_begun_at < v_last.begun_at,
      true
    ) then
      begin
        v_counts := (
          select jsonb_build_object('channels', s.channels, 'waiting', s.waiting, 'leased', s.leased, 'dead', s.dead,
            'unfolded_wakes', s.unfolded_wakes, 'history_overflow', s.history_overflow)
          from queue_status() s
        );
      exception when query_canceled then
        null;
      end;
      update exact_count c set
        counts = coalesce(v_counts, c.counts),
        counted_at = case when v_counts is null then c.counted_at else v_begun_at end,
        begun_at = v_begun_at,
        took_ms = ceil(extract(epoch from clock_timestamp() - v_begun_at) * 1000)::bigint
      where c.is_only;
    end if;
  end if;
  select (c.counts ->> 'channels')::bigint, (c.counts ->> 'waiting')::bigint, (c.counts ->> 'leased')::bigint,
    (c.counts ->> 'dead')::bigint, (c.counts ->> 'unfolded_wakes')::bigint, (c.counts ->> 'history_overflow')::bigint,
    c.counted_at, extract(epoch from clock_timestamp() - c.counted_at)::float8, c.took_ms
  into channels, waiting, leased, dead, unfolded_wakes, history_overflow, counted_at, age_s, took_ms
  from exact_count c where c.is_only;
end
$$;
