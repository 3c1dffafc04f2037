-- require_progress: raise unless the progress of attempts is from 0 to 1, and their notes are short. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_progress(p_progress real[], p_notes text[], p_count integer) returns void
language plpgsql
as $$
begin
  perform require_length('progress', cardinality(p_progress), p_count);
  perform require_length('notes', cardinality(p_notes), p_count);
  if exists (select from unnest(p_progress) u where u not between 0 and 1) then
    perform reject('progress', (select min(u)::text from unnest(p_progress) u where u not between 0 and 1),
      'between 0 and 1');
  elsif exists (select from unnest(p_notes) u where length(u) > 200) then
    perform reject('notes', (select max(length(u)) from unnest(p_notes) u) || ' characters', 'at most 200 characters');
  end if;
end
$$;
