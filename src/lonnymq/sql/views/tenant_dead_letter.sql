-- tenant_dead_letter: each dead letter of the tenant that asks, without its content.
create or replace view tenant_dead_letter with (security_barrier) as
select d.message_uuid, d.channel, d.key, d.attempts, d.error, from_epoch(d.created_at) as created_at,
  from_epoch(d.buried_at) as buried_at, octet_length(d.content) as content_bytes
from tenant_dead_list(p_limit => null) d;
