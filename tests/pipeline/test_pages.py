"""The pages about the pipeline: their examples run, and the reference is complete."""

import sys
import warnings

import pytest

from tests.examples.pages import ROOT, named_extras, with_policy
from tests.examples.programs import run
from tests.examples.test_examples import modules_of_other_extras

TUTORIAL = ROOT / "docs" / "tutorial" / "spark-pipeline.md"


@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("spark")
def test_the_tutorial_runs_with_java_and_the_extras_it_names_first(monkeypatch: pytest.MonkeyPatch) -> None:
    named = named_extras(TUTORIAL) - {"java"}
    assert {"spark", "cli"} < named
    for module in modules_of_other_extras(named):
        monkeypatch.setitem(sys.modules, module, None)
    with warnings.catch_warnings():
        warnings.simplefilter("default", ResourceWarning)
        run(TUTORIAL, {})


def test_the_reference_names_every_column_of_the_lake() -> None:
    from lonnymq.pipeline import schemas

    text = (ROOT / "docs" / "reference" / "lake.md").read_text(encoding="utf-8")
    tables = ("ATTEMPTS", "POLICIES", "WAITING", "WINDOWS", "FAIRNESS", "REASONS", "FORECAST", "REJECTED")
    for name in tables:
        part = text.partition(f"\n## {name.lower()}\n")[2].partition("\n## ")[0]
        assert part, name
        known = with_policy(part)
        assert [column for column in getattr(schemas, name).names if f"`{column}`" not in known] == []
