-- apply_migration: run one of the files in migrations/ and record it, unless it is recorded. The client fills it in.
-- A script can be run again after it was cut off.
do $apply$
begin
  if not exists (select from migration m where m.version = {version}) then
    execute $migration$
{text}
$migration$;
    insert into migration (version, name, breaks_below) values ({version}, '{name}', {breaks_below});
  end if;
end
$apply$;
