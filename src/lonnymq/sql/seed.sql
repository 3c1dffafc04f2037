-- seed.sql: the rows that every queue has. It runs after tables and functions, at each install and migrate.

-- A salt of 122 random bits, so that nobody can predict channel ids.
insert into setting (salt)
values (decode(replace(gen_random_uuid()::text, '-', ''), 'hex'))
on conflict do nothing;

-- The row in which queue_count keeps its counts.
insert into exact_count default values on conflict do nothing;
