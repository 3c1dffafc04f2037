-- tenant_confine: let a role use more channels as a tenant (see queue_grant). With p_channels: these; with p_prefix:
-- all channels that begin with it, of which its messages can be in p_max_channels at a time (10, unless said
-- otherwise), because each channel gets turns. The prefix ends with a punctuation character of ASCII, so that 'acme/'
-- is not also the prefix of another tenant's name, as 'acme' would be. The role must have no other privileges on the
-- queue.
-- Locks:  nothing that a tenant's call locks.
-- Writes: tenant, tenant_channel, indexes of history.
create or replace function tenant_confine(
  p_role oid, p_channels text[], p_prefix text, p_max_channels integer
) returns void
language plpgsql
set search_path from current
as $$
declare
  v_schema constant oid := (select c.relnamespace from pg_class c where c.oid = 'turn'::regclass);
begin
  if coalesce(cardinality(p_channels), 0) = 0 and p_prefix is null then
    perform reject('channels', null, 'at least one channel, or a prefix');
  elsif cardinality(p_channels) > 10000 then
    perform reject('channels', cardinality(p_channels) || ' elements', 'at most 10000 elements');
  elsif length(p_prefix) > 255 or p_prefix ~ '[[:cntrl:]]' or p_prefix !~ '[!-/:-@[-`{-~]$' then
    perform reject('prefix', quote_literal(p_prefix), '1 to 255 characters without control characters, the last one a'
      ' punctuation character of ASCII, such as / or :');
  elsif p_max_channels is not null and (p_prefix is null or p_max_channels not between 1 and 10000) then
    perform reject('max_channels', p_max_channels::text, 'between 1 and 10000, and absent without a prefix');
  end if;
  perform require_channel(u.channel) from unnest(p_channels) u(channel);
  if exists (
    select from pg_proc p
    where p.pronamespace = v_schema and has_function_privilege(p_role, p.oid, 'execute')
      and p.proname not in (
        select unnest(k.names) from kind_rights() k where k.kind = 'tenant' and k.privilege = 'EXECUTE'
      )
  ) or exists (
    select from pg_class c
    where c.relnamespace = v_schema and c.relkind in ('r', 'p', 'v')
      and (has_any_column_privilege(p_role, c.oid, 'select, insert, update, references')
        or has_table_privilege(p_role, c.oid, 'delete, truncate, trigger'))
      and c.relname not in (
        select unnest(k.names) from kind_rights() k where k.kind = 'tenant' and k.privilege = 'SELECT'
      )
  ) then
    perform reject('role', p_role::regrole::text,
      'a role that has no other privileges on this queue, and is a member of none');
  elsif exists (
    select from pg_roles r
    where r.oid = p_role and (r.rolcreaterole or r.rolreplication)
      or starts_with(r.rolname, 'pg_') and pg_has_role(p_role, r.oid, 'member')
  ) then
    -- It could give itself privileges, or see and hold up what others do.
    perform reject('role', p_role::regrole::text,
      'a role without CREATEROLE and REPLICATION that is a member of no predefined role, such as pg_monitor');
  end if;
  -- Of a former role with this oid, and of roles that were dropped without queue_revoke.
  delete from tenant t where not exists (select from pg_roles r where r.oid = t.role)
    or t.role = p_role and not has_function_privilege(p_role, (
      select p.oid from pg_proc p where p.pronamespace = v_schema and p.proname = 'tenant_create'
    ), 'execute');
  if p_prefix is not null then
    delete from tenant t
    where t.role = p_role and starts_with(t.name, p_prefix) and (t.name <> p_prefix or not t.is_prefix);
    insert into tenant (role, name, is_prefix, max_channels)
    select p_role, p_prefix, true, coalesce(p_max_channels, 10)
    where not exists (
      select from tenant t
      where t.role = p_role and t.is_prefix and t.name <> p_prefix and starts_with(p_prefix, t.name)
    )
    on conflict (role, name) do update set max_channels = excluded.max_channels;
    insert into tenant_channel (name, is_prefix) values (p_prefix, true) on conflict do nothing;
  end if;
  insert into tenant (role, name, is_prefix)
  select p_role, u.channel, false from unnest(p_channels) u(channel)
  where not exists (select from tenant t where t.role = p_role and t.is_prefix and starts_with(u.channel, t.name))
  on conflict do nothing;
  -- Nobody writes into the partitions of the days to come yet.
  perform history_index(i.inhrelid) from pg_inherits i join pg_class c on c.oid = i.inhrelid
  where i.inhparent = 'history'::regclass
    and c.relname > 'history_' || to_char(clock_timestamp() at time zone 'UTC', 'YYYYMMDD');
end
$$;
