-- history: every finished attempt. Append-only, with one partition per day (UTC) of the attempt's end.
-- xid is the transaction that wrote the row. Readers that follow history read in the order of (xid, id), because rows
-- are not committed in the order of their ids.
create sequence history_id_seq as bigint;
create table history (
  id bigint not null default nextval('history_id_seq'),
  xid bigint not null default pg_current_xact_id()::text::bigint,
  message_id bigint not null,
  channel_id bigint not null,
  channel text collate "C",
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
  state bytea,
  headers jsonb
) partition by range (ended_at);
create index history_xid_ix on history (xid, id);

-- history_overflow: takes the attempts of a day that has no partition. history_prepare moves them into one.
create table history_overflow (like history including defaults);
alter table history_overflow replica identity full;

-- history_reader: a reader of history and its position. (xid, id) is the end of the newest batch that was handed out,
-- which is on disk before the reader is told. The reader is done with everything up to (done_xid, done_id).
create table history_reader (
  name text primary key,
  xid bigint not null,
  id bigint not null,
  done_xid bigint not null,
  done_id bigint not null,
  followed_at timestamptz not null default now()
);

-- history_floor: rows up to this position may have been dropped. Without a row, nothing has been dropped.
create table history_floor (
  is_only boolean primary key default true check (is_only),
  xid bigint not null,
  id bigint not null
);
