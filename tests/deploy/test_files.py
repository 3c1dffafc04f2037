"""The files in deploy/ are what their schemas say, and agree with the package."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from typer.testing import CliRunner

from lonnymq.cli.app import app

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
MANIFESTS = [
    (path, document)
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
]


# What is not Kubernetes' own has a schema of its own, in test_monitoring.py.
BUILT_IN = [one for one in MANIFESTS if "keda" not in one[1]["apiVersion"]]


@pytest.mark.parametrize(("path", "manifest"), BUILT_IN, ids=lambda one: getattr(one, "stem", ""))
def test_a_manifest_is_valid_for_old_and_new_clusters(path: Path, manifest: dict[str, Any]) -> None:
    for version in ("1.27", kubernetes_validate.latest_version()):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_the_compose_file_is_valid() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*command, str(DEPLOY / "compose.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_container_runs_a_command_that_exists() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    commands = [service["command"] for service in compose["services"].values() if "build" in service]
    for _, manifest in MANIFESTS:
        containers = manifest["spec"].get("template", {}).get("spec", {}).get("containers", [])
        commands += [container["args"] for container in containers]
    checks = [service.get("healthcheck", {}).get("test", []) for service in compose["services"].values()]
    commands += [check[2:] for check in checks if check[1:2] == ["lonnymq"]]
    assert ["health", "--ready"] in commands
    assert len(commands) >= 4
    for command in commands:
        assert CliRunner().invoke(app, [command[0], "--help"]).exit_code == 0


def test_workers_have_time_to_stop() -> None:
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    assert compose["services"]["worker"]["stop_grace_period"] == "30s"
    graces = [
        manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        for _, manifest in MANIFESTS
        if manifest["kind"] == "Deployment"
    ]
    # shutdown_s, and the five seconds in which handlers are cancelled, and a second more.
    assert graces
    assert all(grace >= 26 for grace in graces)
