-- turn_share: divide p_limit messages among the turns that are ready, the first p_ready of the arrays: whole rounds of
-- turns for every channel that wants more, then what is left in order of waiting. Pure.
-- p_wants: how many messages each channel can use. p_turn_sizes: how many its turn is worth; p_total_size is their sum.
-- p_taken: what it was already served of an interrupted turn. p_intervals_us: its rate limit, or null. p_due_at: since
-- when it has been due. p_can_fill: each channel can use the whole of a turn, and none was interrupted.
-- Returns per turn its share, its next position in the rotation (served_at), and what it has been served of its turn if
-- the end of this reply interrupts that.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_share(
  p_limit integer, p_now bigint, p_ready integer, p_total_size bigint, p_can_fill boolean, p_wants bigint[],
  p_turn_sizes integer[], p_taken integer[], p_intervals_us bigint[], p_due_at bigint[],
  out shares integer[], out served_at bigint[], out taken integer[]
)
language plpgsql stable
as $$
declare
  v_left integer := p_limit;
  v_rounds integer;        -- how many whole rounds v_left is enough for
  v_has_extra boolean[];   -- the turn got messages after the last whole round
  v_more integer;
  v_interrupted integer;   -- the turn that the end of the reply interrupts
begin
  if coalesce(p_ready, 0) = 0 then
    return;
  end if;
  taken := p_taken;
  if p_total_size = p_limit and p_can_fill then
    -- The common case of many channels: one turn each.
    shares := p_turn_sizes[1:p_ready];
  else
    shares := array_fill(0, array[p_ready]);
    loop
      v_rounds := (
        select v_left / nullif(sum(u.turn_size), 0)
        from unnest(p_turn_sizes[1:p_ready], p_wants[1:p_ready], shares) u(turn_size, want, share)
        where u.want > u.share
      );
      exit when v_left = 0 or v_rounds is null;
      for i in 1..p_ready loop
        if p_wants[i] > shares[i] and v_left > 0 then
          v_more := least(p_wants[i] - shares[i], v_left,
            greatest(p_turn_sizes[i] * greatest(v_rounds, 1) - taken[i], 1));
          shares[i] := shares[i] + v_more;
          v_left := v_left - v_more;
          v_has_extra[i] := v_rounds = 0;
          if v_left = 0 and v_rounds = 0 and taken[i] + v_more < p_turn_sizes[i] and p_wants[i] > shares[i]
              and p_intervals_us[i] is null then
            v_interrupted := i;
            taken[i] := taken[i] + v_more;
          else
            taken[i] := 0;
          end if;
        end if;
      end loop;
    end loop;
  end if;
  -- The turns keep their order, with those that got extra messages behind the others. A turn with a rate limit is
  -- stamped with the exact time, which the limit needs. An interrupted turn comes first in the next reply.
  served_at := array(
    select p_now - case when u.interval_us is not null then 0 when u.has_extra then p_ready - u.ordinal
      else 2 * p_ready - u.ordinal end
    from unnest(p_intervals_us[1:p_ready], v_has_extra) with ordinality u(interval_us, has_extra, ordinal)
  );
  if v_interrupted is not null then
    served_at[v_interrupted] := p_due_at[v_interrupted];
  end if;
end
$$;
