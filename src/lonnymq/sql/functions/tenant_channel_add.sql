-- tenant_channel_add: note the first use of a channel by a tenant. Under a prefix, raise if max_channels are in use
-- already. SQLSTATE 42501.
-- Locks:  the row of the prefix, and that of the channel: waits for other open transactions that add channels there.
-- Writes: tenant_channel.
create or replace function tenant_channel_add(p_channel text, p_grant tenant) returns void
language plpgsql
as $$
begin
  perform require_read_committed('the first use of a channel by tenant_create');
  if p_grant.is_prefix then
    perform from tenant_channel u where u.name = p_grant.name and u.is_prefix for update;
    if (
      select count(*) from (
        select from tenant_channel u
        where u.name >= p_grant.name and u.name < tenant_prefix_end(p_grant.name) and not u.is_prefix
          and u.name <> p_channel collate "C"
        limit p_grant.max_channels
      ) n
    ) >= p_grant.max_channels then
      raise exception using
        errcode = '42501',
        message = format('role %I may use at most %s channels that begin with %L, got another one: %L', caller_role(),
          p_grant.max_channels, p_grant.name, left(p_channel, 100)),
        hint = 'Use fewer channels, or let the owner of the queue grant a higher max_channels.';
    end if;
  end if;
  insert into tenant_channel (name) values (p_channel) on conflict do nothing;
end
$$;
