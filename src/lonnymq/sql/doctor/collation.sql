-- collation: the version of the collation with which the database's indexes were built, and that of this machine,
-- if they differ. Needs PostgreSQL 15.
select d.datcollversion, pg_database_collation_actual_version(d.oid)
from pg_database d
where d.datname = current_database() and d.datcollversion <> pg_database_collation_actual_version(d.oid);
