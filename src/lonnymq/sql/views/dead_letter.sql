-- dead_letter: each dead letter, without its content.
create or replace view dead_letter as
select d.message_id, d.channel, d.key, d.attempts, d.error, from_epoch(d.created_at) as created_at,
  from_epoch(d.buried_at) as buried_at, octet_length(d.content) as content_bytes
from dead d;
