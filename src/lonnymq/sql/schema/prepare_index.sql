-- prepare_index: drop an index that was not built to the end, because the server crashed or the statement was cut off:
-- PostgreSQL never uses it, but writes to it. While another session still builds it, this gets no lock. The client
-- fills in the name. The search_path begins with the queue's schema.
do $$
declare
  v_index constant regclass := (
    select i.indexrelid from pg_index i
    where i.indexrelid = to_regclass(format('%I.%I', current_schema(), '{index}')) and not i.indisvalid
  );
begin
  if v_index is not null then
    execute format('drop index %s', v_index);
  end if;
end
$$;
