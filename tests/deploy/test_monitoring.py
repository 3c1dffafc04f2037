"""Alerts, the dashboard and the autoscaler ask for metrics that exist, in expressions that are valid."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lonnymq import WorkerState
from lonnymq.telemetry import prometheus_names as names
from lonnymq.telemetry.prometheus_names import HISTOGRAM, MetricName
from lonnymq.worker.metrics import OUTCOMES
from tests.examples.pages import ROOT

DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"
DASHBOARD = DEPLOY / "grafana" / "dashboards" / "lonnymq.json"
METRICS = {one.name: one for one in vars(names).values() if isinstance(one, MetricName)}
# What Prometheus adds to each series, and what an expression may create.
OF_PROMETHEUS = {"job", "instance", "le", "alertname", "alertstate"}
VALUES = {
    "state": {names.WAITING, names.SCHEDULED, names.LEASED, names.DEAD, names.BUSY, names.FREE, *WorkerState},
    "outcome": set(OUTCOMES),
}
COUNTS = ("minReplicaCount", "maxReplicaCount", "pollingInterval", "cooldownPeriod")
# As in KEDA's custom resource definition, for what is used of it.
SCALED_OBJECT = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"const": "keda.sh/v1alpha1"},
        "kind": {"const": "ScaledObject"},
        "spec": {
            "type": "object",
            "required": ["scaleTargetRef", "triggers"],
            "additionalProperties": False,
            "properties": {
                "scaleTargetRef": {"type": "object", "required": ["name"]},
                **{name: {"type": "integer", "minimum": 0} for name in COUNTS},
                "fallback": {
                    "required": ["failureThreshold", "replicas"],
                    "additionalProperties": {"type": "integer"},
                },
                "triggers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "required": ["type", "metadata"],
                        "properties": {
                            "metadata": {
                                "required": ["url", "valueLocation", "targetValue"],
                                "additionalProperties": {"type": "string"},
                            }
                        },
                    },
                },
            },
        },
    },
}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


RULES = [rule for group in load(ALERTS)["groups"] for rule in group["rules"]]
PANELS = [
    panel for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"] if "targets" in panel
]


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in PANELS for target in panel["targets"])


def metric(name: str) -> MetricName:
    """Return the metric of a series; a histogram has several series."""
    return METRICS.get(name) or METRICS[re.sub(r"_(bucket|sum|count)$", "", name)]


def test_every_expression_names_metrics_labels_and_values_that_exist() -> None:
    used = set()
    for expression in expressions():
        series = re.findall(r"(lonnymq_\w+)(?:\{([^}]*)\})?", expression)
        assert series or expression.startswith("absent"), expression
        for name, selector in series:
            found = metric(name)
            assert (found.name == name) != (found.kind == HISTOGRAM), name
            used.add(found.name)
            for label, value in re.findall(r'(\w+)=~?"([^"]*)"', selector):
                assert label in {*found.labels, *OF_PROMETHEUS}, expression
                assert label not in VALUES or set(value.split("|")) <= VALUES[label], expression
        labels = {label for found in re.findall(r"by \(([^)]*)\)", expression) for label in found.split(", ")}
        known = {label for name, _ in series for label in metric(name).labels}
        assert labels <= known | OF_PROMETHEUS, expression
        assert expression.count("(") == expression.count(")")
    # What is not on the dashboard is about the exporter itself.
    assert set(METRICS) - used == {
        *(names.INFO.name, names.LOOK_AGE_SECONDS.name, names.COUNTS_EXACT.name, names.DUE_COMPLETE.name),
        names.WORKER_INFO.name,
    }


def test_alerts_say_what_is_wrong_and_are_documented() -> None:
    page = (ROOT / "docs" / "howto" / "monitor.md").read_text(encoding="utf-8")
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert f"`{rule['alert']}`" in page
    tested = load(DEPLOY / "prometheus" / "alerts_test.yaml")
    assert tested["rule_files"] == [ALERTS.name]


def test_the_panels_of_the_dashboard_are_drawn_beside_one_another() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)
    variables = {one["name"] for one in dashboard["templating"]["list"]}
    for panel in PANELS:
        text = json.dumps(panel)
        assert set(re.findall(r"\$\{?(\w+)", text)) <= variables | {"__rate_interval"}
        assert panel["datasource"]["uid"] == "${datasource}"


@pytest.mark.skipif(
    shutil.which("promtool") is None, reason="needs promtool, from Debian's package prometheus"
)
def test_prometheus_accepts_the_rules_and_the_expressions_of_the_dashboard(tmp_path: Path) -> None:
    shown = [
        {"record": f"panel:{number}", "expr": re.sub(r"\$__rate_interval", "5m", one.replace("$job", ".*"))}
        for number, one in enumerate(expressions())
    ]
    panels = tmp_path / "panels.yaml"
    panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": shown}]}))
    folder = DEPLOY / "prometheus"
    for command in (
        ("check", "rules", str(ALERTS)),
        ("check", "rules", str(panels)),
        ("check", "config", "--syntax-only", str(folder / "prometheus.yaml")),
        ("test", "rules", str(folder / "alerts_test.yaml")),
    ):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def manifest(file: str, kind: str) -> Any:
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / file).read_text(encoding="utf-8"))
    [found] = [one for one in documents if one["kind"] == kind]
    return found


def test_the_autoscaler_asks_for_a_figure_that_the_exporter_gives() -> None:
    scaled = manifest("autoscale.yaml", "ScaledObject")
    jsonschema.validate(scaled, SCALED_OBJECT)
    service, worker = manifest("exporter.yaml", "Service"), manifest("worker.yaml", "Deployment")
    [trigger] = scaled["spec"]["triggers"]
    port = service["spec"]["ports"][0]["port"]
    assert trigger["metadata"]["url"] == f"http://{service['metadata']['name']}:{port}/demand"
    # tests/telemetry reads it from a running exporter.
    assert trigger["metadata"]["valueLocation"] == "work"
    assert scaled["spec"]["scaleTargetRef"]["name"] == worker["metadata"]["name"]
    assert worker["spec"]["template"]["spec"]["containers"][0]["args"][0] == "work"


def test_the_compose_file_mounts_files_that_exist_and_scrapes_its_exporter() -> None:
    compose = load(DEPLOY / "compose.yaml")
    for service in compose["services"].values():
        for volume in service.get("volumes", ()):
            if volume.startswith("."):
                assert (DEPLOY / volume.partition(":")[0]).exists(), volume
    exporter, workers = load(DEPLOY / "prometheus" / "prometheus.yaml")["scrape_configs"]
    host, _, port = exporter["static_configs"][0]["targets"][0].partition(":")
    assert (compose["services"][host]["command"][0], port) == ("exporter", "9719")
    [found] = workers["dns_sd_configs"]
    worker = compose["services"][found["names"][0]]
    assert worker["command"][0] == "work"
    assert worker["environment"]["LONNYMQ_HEALTH_PORT"] == str(found["port"])
    assert worker["environment"]["LONNYMQ_HEALTH_HOST"] == "0.0.0.0"
    [source] = load(DEPLOY / "grafana" / "provisioning" / "datasources" / "prometheus.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
