-- mark: note on table migration which files were applied, and what the ledger says. A comment is read from the catalog:
-- to learn a queue's version nobody needs to read a table, which may be a stranger's and run a stranger's code. The client
-- fills in the fingerprint.
do $$
begin
  execute format('comment on table migration is %L', (
    select format('lonnymq %s %s %s', '{fingerprint}', max(m.version), max(m.breaks_below)) from migration m
  ));
end
$$;
