"""Installs peers, each at a pinned version in an environment of its own, outside the repository."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.peer import Peer, Runtime

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
# Installed with the peers, which need a newer version than distributions have.
NODE = "node@22.23.3"
INSTALL_TIMEOUT_S = 600.0


class NotInstallable(Exception):
    """A peer cannot be installed on this machine; the message says why, and what would help."""


@dataclass(frozen=True)
class Environment:
    """How a peer's program is started."""

    argv: tuple[str, ...]
    variables: dict[str, str]


def cache_folder() -> Path:
    chosen = os.environ.get("LONNYMQ_BENCH_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(chosen) if chosen else Path(base) / "lonnymq" / "peers"


def install(peer: Peer) -> Environment:
    """Return the peer's environment, which is installed at first use."""
    if peer.runtime is Runtime.THIS_PYTHON:
        return _python(Path(sys.executable), peer)
    packages = peer.packages if peer.runtime is Runtime.PYTHON else (*peer.packages, NODE)
    digest = hashlib.sha256(" ".join((sys.version, *packages)).encode()).hexdigest()[:8]
    folder = cache_folder() / f"{peer.name}-{digest}"
    if not (folder / "installed").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _install_packages(folder, peer.runtime, packages)
        (folder / "installed").touch()
    if peer.runtime is Runtime.PYTHON:
        return _python(folder / "bin" / "python", peer)
    node = folder / "node_modules" / "node" / "bin" / "node"
    return Environment((str(node), str(PROGRAMS / peer.program)), {"PEER_MODULES": f"{folder}/"})


def _python(python: Path, peer: Peer) -> Environment:
    return Environment(
        (str(python), "-m", f"benchmarks.peers.programs.{peer.program}"), {"PYTHONPATH": str(ROOT)}
    )


def _install_packages(folder: Path, runtime: Runtime, packages: Sequence[str]) -> None:
    if runtime is Runtime.PYTHON:
        venv.create(folder, with_pip=True)
        pip = (
            str(folder / "bin" / "python"),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
        )
        _run((*pip, *packages), "needs PyPI, or a mirror configured in pip")
        return
    npm = shutil.which("npm")
    if npm is None:
        raise NotInstallable("npm is not installed; on Debian or Ubuntu: apt install npm")
    # Some versions of npm run a package's install scripts only if the package is listed here.
    names = [package.rpartition("@")[0] for package in packages]
    manifest = {"private": True, "allowScripts": dict.fromkeys(names, True)}
    (folder / "package.json").write_text(json.dumps(manifest))
    npm_install = (npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--loglevel=error")
    _run((*npm_install, *packages), "needs the npm registry, or a mirror configured in npm")


def _run(command: Sequence[str], needs: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NotInstallable(f"{command[0]} took more than {INSTALL_TIMEOUT_S:.0f} s; it {needs}") from None
    if done.returncode:
        output = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise NotInstallable(f"{' | '.join(output[:3])[:400]}; it {needs}")
