-- require_read_committed: raise unless the transaction is READ COMMITTED. SQLSTATE LQ002.
-- Only there does each statement see what others have committed; elsewhere a call would answer from an old snapshot.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_read_committed(p_function text) returns void
language plpgsql
set search_path from current
as $$
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception using
      errcode = 'LQ002',
      message = format('%s must run in a READ COMMITTED transaction, got %s',
        p_function, upper(current_setting('transaction_isolation'))),
      hint = 'Call it in a transaction of its own, or begin yours with ISOLATION LEVEL READ COMMITTED.';
  end if;
end
$$;
