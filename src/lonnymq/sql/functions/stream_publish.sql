-- stream_publish: publish the next batch of a stream of bulk loads, which is staged under the publication 'stream ' and
-- the stream's name (see message_publish). Publishing the last batch again does nothing. An earlier batch is an error,
-- SQLSTATE LQ008: its sender has lost its position, and its rows would be skipped silently. The first batch may have a
-- number up to 1000000000, and a later one may be up to 1000000 after the last, so that a wrong number cannot use up
-- all numbers. Each role has streams of its own.
-- Returns 'published' or 'already_published', how many messages were created, and how many were duplicates by key.
-- Locks:  the stream's row: waits for another transaction that publishes a batch of it.
-- Writes: stream, and as message_publish.
create or replace function stream_publish(
  p_stream text, p_batch bigint, p_parts uuid[], p_counts bigint[],
  out outcome text, out created bigint, out duplicates bigint
)
language plpgsql security definer
set search_path from current
as $$
#variable_conflict use_column
declare
  v_role constant text := caller_role();
  v_publication constant text := 'stream ' || p_stream;
  v_last bigint;
begin
  if p_stream is null or length(p_stream) not between 1 and 240 then
    perform reject('stream', p_stream, '1 to 240 characters');
  elsif p_batch is null or p_batch < 0 then
    perform reject('batch', p_batch::text, 'at least 0');
  end if;
  insert into stream (role, name, last_batch, created, duplicates) values (v_role, p_stream, -1, 0, 0)
  on conflict do nothing;
  select s.last_batch, s.created, s.duplicates into v_last, created, duplicates
  from stream s where s.role = v_role and s.name = p_stream for update;
  if p_batch < v_last then
    raise exception using
      errcode = 'LQ008',
      message = format('stream %L has already published batch %s and cannot publish batch %s: it was restarted with '
        'other batches under the same name', p_stream, v_last, p_batch),
      hint = 'Use a new checkpoint or another stream_id.';
  elsif p_batch = v_last then
    perform stage_discard(v_publication, p_parts);
    outcome := 'already_published';
    return;
  elsif v_last = -1 and p_batch > 1000000000 then
    perform reject('batch', p_batch::text, 'at most 1000000000 for the first batch of a stream');
  elsif v_last > -1 and p_batch > v_last + 1000000 then
    perform reject('batch', p_batch::text, format('at most %s, because the last batch of this stream was %s',
      v_last + 1000000, v_last));
  end if;
  -- The row in stream replaces the one in publication: one row per stream, not one per batch.
  if exists (select from publication p where p.role = v_role and p.name = v_publication) then
    perform reject('stream', p_stream, format('another name, because a bulk load has the name %L', v_publication));
  end if;
  select p.outcome, p.created, p.duplicates into outcome, created, duplicates
  from message_publish(v_publication, p_parts, p_counts) p;
  delete from publication p where p.role = v_role and p.name = v_publication;
  update stream s set last_batch = p_batch, created = stream_publish.created, duplicates = stream_publish.duplicates,
    published_at = now()
  where s.role = v_role and s.name = p_stream;
end
$$;
