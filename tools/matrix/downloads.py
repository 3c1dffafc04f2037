"""Fetches pinned files into the cache, and refuses what does not have the expected hash."""

import base64
import hashlib
import subprocess
import urllib.request
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
    urls: tuple[str, ...]
    integrity: str

    def is_intact(self, content: bytes) -> bool:
        algorithm, _, expected = self.integrity.partition("-")
        return base64.b64encode(hashlib.new(algorithm, content).digest()).decode() == expected


def fetch(download: Download, cache: Path = CACHE) -> Path:
    """Return the file from the cache, or from the first address that has it."""
    path = cache / "downloads" / download.name
    if path.exists() and download.is_intact(path.read_bytes()):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    problems = []
    for url in download.urls:
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:
                content: bytes = response.read()
        except (URLError, OSError) as error:
            problems.append(f"{url}: {error}")
            continue
        if download.is_intact(content):
            partial = path.with_name(f"{path.name}.partial")
            partial.write_bytes(content)
            partial.rename(path)
            return path
        problems.append(f"{url}: the file does not have the expected hash")
    raise NotAvailable("; ".join(problems))


def unpack(archive: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "--extract", "--file", archive, "--directory", directory], check=True)
