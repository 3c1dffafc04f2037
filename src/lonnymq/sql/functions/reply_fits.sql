-- reply_fits: which of these messages, in this order, have their content in a reply of that many bytes.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function reply_fits(p_messages tid[], p_bytes bigint) returns boolean[]
language plpgsql
as $$
begin
  return array(
    select sum(coalesce(octet_length(m.content) + coalesce(octet_length(m.state), 0) + coalesce(octet_length(m.key), 0), 0))
      over (order by u.place) <= p_bytes
    from unnest(p_messages) with ordinality u(tid, place)
    left join message m on m.ctid = u.tid
    order by u.place
  );
end
$$;
