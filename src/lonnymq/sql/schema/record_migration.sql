-- record_migration: record that one of the files in migrations/ is part of this schema. The client fills in its version
-- and name, and the lowest version whose clients may still use the schema.
insert into migration (version, name, breaks_below)
values ({version}, '{name}', {breaks_below})
on conflict do nothing;
