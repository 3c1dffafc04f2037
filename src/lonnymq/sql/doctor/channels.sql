-- channels: channels whose next message has been due for over a minute, and for how long: either it may be released and
-- is not, or the channel is paused. At most 100 of each. The unqualified names are resolved by search_path.
select s.channel, s.reason, s.waiting::bigint, s.leased::bigint, s.overdue_s
from (
  select v.channel, v.reason, v.waiting, v.leased,
    extract(epoch from clock_timestamp() - v.ready_at)::double precision as overdue_s
  from channel_overdue(100) v
  union all
  select v.channel, v.reason, v.waiting, v.leased, extract(epoch from clock_timestamp() - greatest(
    from_epoch(v.head_dequeue_at), from_epoch(v.head_created_at), v.last_release_at))::double precision
  from (select * from channel_status v where v.is_paused limit 100) v
  where v.reason = 'paused'
) s
where s.overdue_s > 60
order by s.overdue_s desc
limit 100;
