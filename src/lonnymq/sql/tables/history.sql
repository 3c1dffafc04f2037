-- history: every finished attempt, append-only, one partition per day (UTC) of its end.
-- xid is the writing transaction: readers that follow the stream go by (xid, id), because ids commit out of order.
create sequence history_id_seq as bigint;
create table history (
  id bigint not null default nextval('history_id_seq'),
  xid bigint not null default pg_current_xact_id()::text::bigint,
  message_id bigint not null,
  channel_id bigint not null,
  channel text,
  outcome text not null,
  attempt integer not null,
  created_at bigint not null,
  dequeue_at bigint not null,
  leased_at bigint,
  ended_at bigint not null,
  worker text,
  error text,
  content_bytes integer,
  content bytea,
  state bytea
) partition by range (ended_at);
create index history_xid_ix on history (xid, id);

-- history_overflow: where attempts go when nobody has made a partition for today. history_prepare moves them.
create table history_overflow (like history including defaults);
alter table history_overflow replica identity full;

-- history_reader: who follows history, and how far. (xid, id) is the end of the newest batch that was given out, written
-- to disk before anybody knows it; up to (done_xid, done_id) the reader needs nothing any more.
create table history_reader (
  name text primary key,
  xid bigint not null,
  id bigint not null,
  done_xid bigint not null,
  done_id bigint not null,
  followed_at timestamptz not null default now()
);

-- history_floor: up to here rows may have been dropped. No row: nothing was.
create table history_floor (
  is_only boolean primary key default true check (is_only),
  xid bigint not null,
  id bigint not null
);
