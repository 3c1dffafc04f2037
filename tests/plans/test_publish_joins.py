"""Publishing joins staged rows and channels efficiently, however many there are."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plans.plan import can_explain, collect_plans
from tests.sql.conftest import Open
from tests.sql.session import Session

pytestmark = pytest.mark.plan
CHANNELS = 1_000


def stage(queue: Session, part: uuid.UUID, ordinals: int, columns: str = "", values: str = "") -> None:
    queue.run(
        f"insert into stage (publication, part, ordinal, channel, contents {columns})"
        f" select %s, %s, n / {CHANNELS}, 'c' || n %% {CHANNELS}, array['x'::bytea, 'y'] {values}"
        " from generate_series(0, %s) n",
        str(part),
        part,
        ordinals * CHANNELS - 1,
    )


def rejected_pairs(node: dict[str, Any]) -> Iterator[int]:
    yield node.get("Rows Removed by Join Filter", 0) * max(1, node.get("Actual Loops", 1))
    for below in node.get("Plans", []):
        yield from rejected_pairs(below)


@pytest.mark.parametrize(
    ("columns", "values"),
    [("", ""), (", keys, dequeue_ats", ", array['k' || n, null], array[null, n]")],
    ids=["plain", "with keys and times"],
)
@pytest.mark.parametrize("analysed", ["never", "empty", "full"])
def test_staged_rows_are_not_compared_with_every_channel(
    session: Open, analysed: str, columns: str, values: str
) -> None:
    queue = session()
    if not can_explain(queue):
        pytest.skip("this server has no auto_explain")
    if analysed == "empty":
        queue.run("analyze stage; analyze channel; analyze message")
    part = uuid.uuid4()
    stage(queue, part, 2, columns, values)
    if analysed == "full":
        queue.run("analyze stage; analyze channel; analyze message")
    with collect_plans(queue) as plans:
        outcome = queue.rows(
            "select outcome, created from message_publish(%s, %s, %s)", str(part), [part], [4 * CHANNELS]
        )
    assert outcome == [("published", 4 * CHANNELS)]
    assert len(plans.found) > 3
    assert max(pairs for plan in plans.found for pairs in rejected_pairs(plan["Plan"])) <= CHANNELS
