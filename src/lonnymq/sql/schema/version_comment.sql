-- version_comment: record, as a comment on the table migration, which files were applied and which version they
-- make. A comment is read from the catalog, so nobody needs to read a table to learn the version of a queue: a table
-- may belong to an untrusted role and run that role's code. The client fills in the fingerprint and its own version:
-- that holds as soon as the functions are replaced, even if the last phase of a migration, which removes something,
-- is not done yet.
do $$
begin
  execute format('comment on table migration is %L', (
    select format('lonnymq %s %s %s', '{fingerprint}', greatest(max(m.version), {version}),
      greatest(max(m.breaks_below), {breaks_below})) from migration m
  ));
end
$$;
