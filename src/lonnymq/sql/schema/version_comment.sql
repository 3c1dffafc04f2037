-- version_comment: record, as a comment on the table migration, which files were applied and which version they make. A
-- comment is read from the catalog, so nobody needs to read a table to learn the version of a queue: a table may belong
-- to an untrusted role and run that role's code. The client fills in the fingerprint.
do $$
begin
  execute format('comment on table migration is %L', (
    select format('lonnymq %s %s %s', '{fingerprint}', max(m.version), max(m.breaks_below)) from migration m
  ));
end
$$;
