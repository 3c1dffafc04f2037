"""The pages touch no more of the database in a large queue."""

import pytest

from tests.dashboard.conftest import OpenClient
from tests.plans.plan import flush_statistics
from tests.plans.test_inspection_cost import fill
from tests.races.sessions import wait_for
from tests.sql.conftest import Open
from tests.sql.session import Session

PATHS = (
    *("/", "/channels", "/channels?order=messages", "/channels?order=name&prefix=c7", "/channels/c7"),
    *("/messages", "/messages?status=leased", "/messages?channel=c7&status=scheduled", "/messages/7"),
    *(
        "/failures",
        "/failures?error=error+1",
        "/failures?channel=c7",
        "/crons",
        "/workers",
        "/audit",
        "/system",
    ),
)
SMALL, LARGE = 11_000, 40_000
TOUCHED = (
    "select sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))::bigint"
    " from pg_statio_all_tables where schemaname = 'lonnymq'"
)
OTHERS = (
    "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    " and backend_type = 'client backend'"
)
# It would touch pages, too, at any time.
NO_VACUUM = """
    do $$
    declare
      v_table regclass;
    begin
      for v_table in
        select oid from pg_class where relnamespace = 'lonnymq'::regnamespace and relkind = 'r'
      loop
        execute format('alter table %s set (autovacuum_enabled = false)', v_table);
      end loop;
    end
    $$
"""


@pytest.fixture
def session(connect: object) -> Open:
    return lambda **options: Session(connect(**options))  # type: ignore[operator]


def touched(queue: Session) -> int:
    flush_statistics(queue)
    found: int = queue.ask(TOUCHED)
    return found


def cost(queue: Session, client: OpenClient, path: str) -> int:
    before = touched(queue)
    browser = client()
    assert browser.get(path).status_code == 200
    # The statistics of a session are complete when it has ended.
    browser.__exit__(None, None, None)
    wait_for(lambda: queue.ask(OTHERS) == 0)
    return touched(queue) - before


@pytest.mark.slow
@pytest.mark.broken_on_purpose
def test_pages_touch_no_more_of_a_large_queue(client: OpenClient, session: Open) -> None:
    """Dead letters and history are inserted directly."""
    queue = session()
    queue.run("select history_prepare(1)")
    queue.run(NO_VACUUM)
    found: dict[int, dict[str, int]] = {}
    for count in (SMALL, LARGE):
        fill(queue, count)
        queue.run("vacuum (analyze)")
        # Exact counts are rare, and read everything.
        queue.run("update exact_count set begun_at = clock_timestamp(), took_ms = 3600000")
        found[count] = {path: cost(queue, client, path) for path in PATHS}
    grown = {
        path: (small, found[LARGE][path])
        for path, small in found[SMALL].items()
        if found[LARGE][path] > 1.6 * small + 300
    }
    assert grown == {}
    assert min(found[LARGE].values()) > 0
