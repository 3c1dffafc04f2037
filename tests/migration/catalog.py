"""Describes a schema from PostgreSQL's catalog, to compare two schemas."""

from typing import Any

import psycopg

# Each returns rows of text, in which the name of the schema is replaced.
DESCRIPTIONS = {
    "columns": """
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
          a.attgenerated, a.attnum, pg_get_expr(d.adbin, d.adrelid), a.attstorage
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
        where c.relnamespace = %(schema)s::regnamespace
        order by c.relname, a.attnum""",
    "relations": """
        select c.relname, c.relkind, c.reloptions, c.relpersistence, c.relreplident, c.relispartition
        from pg_class c
        where c.relnamespace = %(schema)s::regnamespace
        order by c.relname""",
    "constraints": """
        select c.conname, c.conrelid::regclass, pg_get_constraintdef(c.oid), c.convalidated
        from pg_constraint c
        where c.connamespace = %(schema)s::regnamespace
        order by c.conname, c.conrelid::regclass::text""",
    "indexes": """
        select c.relname, pg_get_indexdef(i.indexrelid), i.indisreplident
        from pg_index i
        join pg_class c on c.oid = i.indexrelid
        where c.relnamespace = %(schema)s::regnamespace
        order by c.relname""",
    "sequences": """
        select c.relname, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache
        from pg_sequence s
        join pg_class c on c.oid = s.seqrelid
        where c.relnamespace = %(schema)s::regnamespace
        order by c.relname""",
    "partitions": """
        select c.relname, pg_get_expr(c.relpartbound, c.oid), i.inhparent::regclass
        from pg_inherits i
        join pg_class c on c.oid = i.inhrelid
        where c.relnamespace = %(schema)s::regnamespace
        order by c.relname""",
    "functions": """
        select p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), p.prosrc,
          array_to_string(p.proconfig, '; '), p.prosecdef, p.provolatile, p.proparallel, p.proisstrict,
          l.lanname
        from pg_proc p
        join pg_language l on l.oid = p.prolang
        where p.pronamespace = %(schema)s::regnamespace
        order by p.proname""",
    "views": """
        select c.relname, pg_get_viewdef(c.oid)
        from pg_class c
        where c.relnamespace = %(schema)s::regnamespace and c.relkind = 'v'
        order by c.relname""",
    "privileges": """
        select 'function', p.proname, p.proacl from pg_proc p where p.pronamespace = %(schema)s::regnamespace
        union all
        select c.relkind::text, c.relname, c.relacl from pg_class c
        where c.relnamespace = %(schema)s::regnamespace
        union all
        select 'schema', 'itself', n.nspacl from pg_namespace n where n.oid = %(schema)s::regnamespace
        order by 1, 2""",
    "comments": """
        select c.relname, obj_description(c.oid, 'pg_class')
        from pg_class c
        where c.relnamespace = %(schema)s::regnamespace and obj_description(c.oid, 'pg_class') is not null
        order by c.relname""",
    "migrations": "select version, name, breaks_below from migration order by version",
}


def describe(connection: psycopg.Connection[Any], schema: str) -> dict[str, list[list[str]]]:
    """Return the description of a schema as text, without its name."""
    quoted: Any = connection.execute("select quote_ident(%s)", (schema,)).fetchone()
    connection.execute("select set_config('search_path', %s || ', pg_temp', false)", quoted)
    return {
        kind: [
            [str(cell).replace(quoted[0], "<schema>").replace(schema, "<schema>") for cell in row]
            for row in connection.execute(query.encode(), {"schema": quoted[0]})
        ]
        for kind, query in DESCRIPTIONS.items()
    }
