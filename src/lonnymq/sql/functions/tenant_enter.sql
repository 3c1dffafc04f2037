-- tenant_enter: raise unless the calling tenant may create messages in a channel, with these max_attempts at most.
-- SQLSTATE 42501. Then max_size is exact: see Locks.
-- Locks:  if the channel has a max_size, its row of tenant_channel: waits for other open transactions of tenants that
--         have created messages in the same channel, because these messages cannot be counted yet. For its first use
--         under a prefix, also the row of the prefix.
-- Writes: tenant_channel.
create or replace function tenant_enter(p_channel text, p_max_attempts integer) returns void
language plpgsql
as $$
declare
  v_grant constant tenant := tenant_require(p_channel);
  v_max_size bigint;
  v_max_attempts integer;
begin
  select nullif(coalesce(c.max_size, s.max_size), -1), nullif(coalesce(c.max_attempts, s.max_attempts), -1)
  into v_max_size, v_max_attempts
  from setting s left join channel c on c.id = channel_id(s.salt, p_channel) where s.is_only;
  if p_max_attempts > v_max_attempts then
    perform reject('max_attempts', p_max_attempts::text,
      format('at most %s, the limit of its channel', v_max_attempts));
  end if;
  if v_max_size is null then
    if not v_grant.is_prefix then
      return;
    end if;
    perform from tenant_channel u where u.name = p_channel collate "C" and not u.is_prefix;
  else
    perform require_read_committed('in a channel with max_size, tenant_create');
    perform from tenant_channel u where u.name = p_channel collate "C" and not u.is_prefix for update;
  end if;
  if not found then
    perform tenant_channel_add(p_channel, v_grant);
  end if;
end
$$;
