-- seed.sql: the rows every queue has. Run after tables and functions, at each install and migrate.

-- Its own salt, so that nobody can foretell channel ids: 122 random bits.
insert into setting (salt)
values (decode(replace(gen_random_uuid()::text, '-', ''), 'hex'))
on conflict do nothing;

-- The ledger: one line per file in migrations/. breaks_below is the lowest version whose clients may stay.
insert into migration (version, name, breaks_below)
values
  (1, 'create_queue', 0)
on conflict do nothing;
