-- require_worker: raise unless a worker's name ends with the fingerprint of its secret: ':' and the first 16 digits of
-- the secret's SHA-256. So nobody else can register a name that leases already bear, or end it. SQLSTATE LQ001.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function require_worker(p_worker text, p_secret text) returns void
language plpgsql
as $$
begin
  if p_worker is null or length(p_worker) not between 17 and 255 then
    perform reject('worker', p_worker, '17 to 255 characters');
  elsif p_secret is null or length(p_secret) not between 32 and 255 then
    perform reject('secret', length(p_secret) || ' characters', '32 to 255 characters');
  elsif right(p_worker, 17) <> ':' || left(encode(sha256(convert_to(p_secret, 'UTF8')), 'hex'), 16) then
    perform reject('worker', p_worker,
      'a name that ends with ":" and the first 16 hexadecimal digits of its secret''s SHA-256');
  end if;
end
$$;
