-- dead_redrive_channel: dead_redrive for the oldest p_limit dead letters of a channel.
-- Returns how many were redriven. Call it until it returns 0.
-- Locks:  as dead_redrive.
-- Writes: as dead_redrive.
create or replace function dead_redrive_channel(p_channel text, p_limit integer default 10000) returns bigint
language plpgsql security definer
set search_path from current
as $$
begin
  perform require_channel(p_channel);
  perform require_batch(p_limit);
  return (
    select count(*) from dead_redrive(array(
      select d.message_id from dead d where d.channel = p_channel
        and (d.key is null or not exists (
          select from setting s join message m on m.channel_id = channel_id(s.salt, d.channel) and m.key = d.key
          where s.is_only
        ))
      order by d.message_id limit p_limit
    )) r where r.outcome = 'redriven'
  );
end
$$;
