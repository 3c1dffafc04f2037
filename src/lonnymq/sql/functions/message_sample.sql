-- message_sample: how many messages of which channels are on p_pages pages of the table message, spread evenly over
-- it, and how many of them are not due yet. A table that has no more pages is read completely.
-- Reads:  message.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function message_sample(p_pages integer)
returns table (channel_id bigint, messages bigint, scheduled bigint)
language plpgsql stable
as $$
#variable_conflict use_column
declare
  v_now constant bigint := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  v_pages constant bigint := table_pages('message');
  v_parts constant integer := case when v_pages <= p_pages then 1 else p_pages end;
  v_page bigint;
  v_from tid;
  v_to tid;
begin
  for v_part in 0..v_parts - 1 loop
    v_page := v_pages * v_part / v_parts;
    v_from := format('(%s,0)', v_page)::tid;
    v_to := format('(%s,0)', case when v_parts = 1 then v_pages + 1 else v_page + 1 end)::tid;
    return query
    select m.channel_id, count(*), count(*) filter (where m.dequeue_at > v_now and m.dequeue_at > m.created_at)
    from message m where m.ctid >= v_from and m.ctid < v_to
    group by m.channel_id;
  end loop;
end
$$;
