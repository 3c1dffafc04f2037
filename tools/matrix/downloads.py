"""Fetches pinned files into the cache, and refuses what does not have the expected hash."""

import base64
import hashlib
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError

CACHE = Path(__file__).resolve().parents[2] / ".matrix"
TIMEOUT_S = 60


class NotAvailable(Exception):
    """A version cannot be tested on this machine. The message says why."""


@dataclass(frozen=True)
class Download:
    """A file with its hash, as npm writes it: the algorithm, a hyphen, and the digest in base64."""

    name: str
    read: Callable[[], bytes]
    integrity: str

    def is_intact(self, content: bytes) -> bool:
        algorithm, _, expected = self.integrity.partition("-")
        return base64.b64encode(hashlib.new(algorithm, content).digest()).decode() == expected


def fetch(download: Download, cache: Path = CACHE) -> Path:
    """Return the file from the cache, or download it."""
    path = cache / "downloads" / download.name
    if path.exists() and download.is_intact(path.read_bytes()):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        content = download.read()
    except (URLError, OSError, subprocess.SubprocessError) as error:
        raise NotAvailable(f"{download.name}: {error}") from None
    if not download.is_intact(content):
        raise NotAvailable(f"{download.name}: the file does not have the expected hash")
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(content)
    partial.rename(path)
    return path


def from_url(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
        content: bytes = response.read()
    return content


def from_npm(package: str) -> bytes:
    """Let npm download a package, from the registry that it is configured for."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["npm", "pack", "--silent", "--pack-destination", directory, package]
        subprocess.run(command, check=True, capture_output=True, timeout=10 * TIMEOUT_S)
        (archive,) = Path(directory).iterdir()
        return archive.read_bytes()


def unpack(archive: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", directory], check=True)
