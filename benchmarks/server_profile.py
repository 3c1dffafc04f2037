"""Reports where the server spends its time, for `--profile`."""

import psycopg

FUNCTIONS = """
    select schemaname || '.' || funcname, calls, total_time, self_time
    from pg_stat_user_functions where calls > 20 order by self_time desc limit 14"""
STATEMENTS = """
    select calls, rows, total_exec_time, toplevel, regexp_replace(left(query, 400), '\\s+', ' ', 'g')
    from pg_stat_statements s join pg_database d on d.oid = s.dbid
    where d.datname = current_database() and s.calls > 20 order by total_exec_time desc limit 24"""


def profile_report(dsn: str, name: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create extension if not exists pg_stat_statements")
        connection.execute("select pg_sleep(1.1)")  # ended sessions report their statistics within a second
        lines = [f"  profile of {name}: function, calls, µs per call, of which in the function itself"]
        for function, calls, total, own in connection.execute(FUNCTIONS):
            lines.append(
                f"    {function:44} {calls:9,} {total / calls * 1000:11,.1f} {own / calls * 1000:11,.1f}"
            )
        lines.append("  statement (nested ones indented): calls, rows per call, µs per call")
        for calls, rows, total, is_top, query in connection.execute(STATEMENTS):
            indent = "" if is_top else "  "
            lines.append(
                f"    {calls:9,} {rows / calls:9,.1f} {total / calls * 1000:11,.1f}  {indent}{query[:110]}"
            )
        return "\n".join(lines)
