-- record_index: record the migration that has built an index, or raise if the index was not built to the end. The
-- client fills it in. The search_path begins with the queue's schema.
do $$
begin
  if not exists (
    select from pg_index i
    where i.indexrelid = to_regclass(format('%I.%I', current_schema(), '{index}')) and i.indisvalid
  ) then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = 'index {index} was not built to the end',
      hint = 'Migrate again: what is left of it is dropped first.';
  end if;
  insert into migration (version, name, breaks_below) values ({version}, '{name}', {breaks_below})
  on conflict do nothing;
end
$$;
