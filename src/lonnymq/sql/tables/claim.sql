-- claim: messages that were leased together, to be processed and completed together, by a consumer that may crash and
-- return. The row keeps the tokens of the leases, and the claim that the consumer completed before this one (prev).
create table claim (
  id uuid primary key default gen_random_uuid(),
  prev uuid,
  consumer text not null,
  message_ids bigint[] not null,
  tokens bigint[] not null,
  is_done boolean not null default false,
  lost integer not null default 0,
  claimed_at timestamptz not null default now(),
  kept_at timestamptz not null default now()
);
