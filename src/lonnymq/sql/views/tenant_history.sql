-- tenant_history: the latest 1,000 finished attempts in each channel of the tenant that asks, as history recorded them.
create or replace view tenant_history with (security_barrier) as
select h.message_uuid, h.channel, h.outcome, h.attempt, from_epoch(h.created_at) as created_at, h.dequeue_at,
  from_epoch(h.leased_at) as leased_at, from_epoch(h.ended_at) as ended_at, h.error, h.content_bytes
from tenant_channels() c
cross join lateral tenant_history_list(c.channel, 1000) h;
