-- bytes_as_json: readable bytes: JSON text as JSON, other UTF-8 text as a string, anything else as {"base64": ...}.
-- Locks:  nothing.
-- Writes: nothing.
create or replace function bytes_as_json(p_bytes bytea) returns jsonb
language plpgsql immutable strict parallel safe
set search_path from current
as $$
declare
  v_text text;
begin
  v_text := convert_from(p_bytes, 'UTF8');
  begin
    return v_text::jsonb;
  exception when others then
    return to_jsonb(v_text);
  end;
exception when others then
  return jsonb_build_object('base64', translate(encode(p_bytes, 'base64'), e'\n', ''));
end
$$;
