-- leases: messages that one attempt has held for over an hour and whose lease has not expired, longest held first. Only
-- the worker ends such a lease. The unqualified name is resolved by search_path.
select v.message_id, v.channel, v.worker,
  extract(epoch from clock_timestamp() - v.leased_at)::double precision as held_s
from lease_status v
where v.leased_at < clock_timestamp() - interval '1 hour' and not v.is_expired
order by v.leased_at, v.message_id
limit 100;
