-- turn_share: divide p_limit messages among turns that are ready, in the order of the arrays: whole rounds by weight for
-- every turn that wants more, then the rest in order of waiting. Pure.
-- Returns for each turn its share, its place in the rotation from now on, and what it has taken of a turn that was cut.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function turn_share(
  p_limit integer, p_now bigint, p_ready integer, p_total_weight bigint, p_wants bigint[], p_weights integer[],
  p_taken integer[], p_intervals bigint[], p_due_at bigint[],
  out shares integer[], out served_at bigint[], out taken integer[]
)
language plpgsql stable
as $$
declare
  v_left integer := p_limit;
  v_round integer;
  v_is_ahead boolean[];
  v_more integer;
  v_cut integer;
begin
  if coalesce(p_ready, 0) = 0 then
    return;
  end if;
  taken := p_taken;
  if p_total_weight = p_limit and p_ready = p_limit then
    -- The common case of many channels: one each.
    shares := array_fill(1, array[p_ready]);
  else
    shares := array_fill(0, array[p_ready]);
    loop
      v_round := (
        select v_left / nullif(sum(u.weight), 0)
        from unnest(p_weights[1:p_ready], p_wants[1:p_ready], shares) u(weight, want, share)
        where u.want > u.share
      );
      exit when v_left = 0 or v_round is null;
      for i in 1..p_ready loop
        if p_wants[i] > shares[i] and v_left > 0 then
          v_more := least(p_wants[i] - shares[i], v_left, greatest(p_weights[i] * greatest(v_round, 1) - taken[i], 1));
          shares[i] := shares[i] + v_more;
          v_left := v_left - v_more;
          v_is_ahead[i] := v_round = 0;
          if v_left = 0 and v_round = 0 and taken[i] + v_more < p_weights[i] and p_wants[i] > shares[i]
              and p_intervals[i] is null then
            v_cut := i;
            taken[i] := taken[i] + v_more;
          else
            taken[i] := 0;
          end if;
        end if;
      end loop;
    end loop;
  end if;
  -- The turns keep their order, those that got more than others behind them; a rate limit needs the exact time. A turn
  -- that was cut by the end of the reply is first in the next one.
  served_at := array(
    select p_now - case when u.interval_us is not null then 0 when u.is_ahead then p_ready - u.place
      else 2 * p_ready - u.place end
    from unnest(p_intervals[1:p_ready], v_is_ahead) with ordinality u(interval_us, is_ahead, place)
  );
  if v_cut is not null then
    served_at[v_cut] := p_due_at[v_cut];
  end if;
end
$$;
