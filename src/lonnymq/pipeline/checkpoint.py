"""The checkpoint of the archive's stream. Spark does not flush it, so a power failure may leave less of it.

Nothing depends on it, because the lake records how far it has the history: without a checkpoint the stream
begins again, and the lake skips what it has.
"""

import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from lonnymq.errors import LonnyError
from lonnymq.model import HistoryPosition
from lonnymq.pipeline.lake.storage import is_local

# Directories with a file for each batch: what it reads, and that it is done.
OFFSETS, COMMITS = "offsets", "commits"


class CheckpointUnreadable(LonnyError):
    """The checkpoint does not say which part of history a batch has."""


@dataclass(frozen=True)
class Bounds:
    """The part of a history that a batch has: after `start`, up to `end`. The first one begins the stream."""

    origin: str
    start: HistoryPosition
    end: HistoryPosition
    is_first: bool


def bounds_of(spark: SparkSession, checkpoint: str, number: int) -> Bounds | None:
    """Return which part of history a batch has, as Spark has logged it; None if it has nothing."""
    offset = _offset(spark, checkpoint, number)
    if "xid" not in offset:
        return None
    end = HistoryPosition(offset["xid"], offset["id"])
    if "after" in offset:
        return Bounds(offset["origin"], HistoryPosition(*offset["after"]), end, is_first=True)
    before = _offset(spark, checkpoint, number - 1)
    return Bounds(offset["origin"], HistoryPosition(before["xid"], before["id"]), end, is_first=False)


def set_aside_if_damaged(checkpoint: str) -> str | None:
    """Rename a checkpoint that Spark could not continue from; return what was done, or None."""
    root = _directory(checkpoint)
    damage = None if root is None else _damage(root)
    if root is None or damage is None:
        return None
    free = (root.with_name(f"{root.name}.damaged-{number}") for number in count(1))
    target = next(path for path in free if not path.exists())
    root.rename(target)
    return (
        f"the checkpoint is damaged, as by a power failure ({damage}), and was renamed to {target}:"
        " continuing where the lake ends"
    )


def _directory(checkpoint: str) -> Path | None:
    if is_local(checkpoint):
        return Path(checkpoint)
    parts = urlsplit(checkpoint)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _damage(root: Path) -> str | None:
    """Say what is wrong with a checkpoint; None if Spark can continue from it, or begin it."""
    offsets, commits = _batches(root / OFFSETS), _batches(root / COMMITS)
    if not offsets and not commits:
        return _damage_of(root / "metadata") if (root / "metadata").exists() else None
    checked = [root / "metadata"]
    for directory, numbers in ((OFFSETS, offsets), (COMMITS, commits)):
        if not numbers:
            continue
        if numbers != list(range(numbers[0], numbers[-1] + 1)):
            return f"a file of {directory} is missing"
        # Spark cannot write a file of which there is a checksum.
        later = [number for number in _batches(root / directory, ".{}.crc") if number > numbers[-1]]
        if later:
            return f"{directory}/{later[0]} is missing"
        # Earlier ones were written so long ago that they are on disk.
        checked += [root / directory / str(number) for number in numbers[-2:]]
    last_commit = max(commits, default=-1)
    if not offsets or last_commit > offsets[-1]:
        return f"{OFFSETS}/{last_commit} is missing"
    if offsets[-1] > last_commit + 1:
        return f"{COMMITS}/{offsets[-1] - 1} is missing"
    return next((found for path in checked if (found := _damage_of(path))), None)


def _batches(directory: Path, named: str = "{}") -> list[int]:
    """Return the numbers of the batches that have a file of such a name."""
    if not directory.is_dir():
        return []
    prefix, _, suffix = named.partition("{}")
    found = (path.name for path in directory.glob(f"{prefix}[0-9]*{suffix}"))
    numbers = (name.removeprefix(prefix).removesuffix(suffix) for name in found)
    return sorted(int(number) for number in numbers if number.isdigit())


def _damage_of(path: Path) -> str | None:
    """Say what is wrong with a file of Spark's: lines of JSON, after the version of the format, if any."""
    name = f"{path.parent.name}/{path.name}" if path.name.isdigit() else path.name
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return f"{name} is missing"
    except UnicodeDecodeError:
        return f"{name} is incomplete"
    if path.name.isdigit() and lines and lines[0].startswith("v"):
        del lines[0]
    checksum = path.with_name(f".{path.name}.crc")
    if checksum.exists() and not checksum.stat().st_size:
        return f"the checksum of {name} is empty"
    # A batch has a line of Spark's, and one for each source.
    if len(lines) < (2 if path.parent.name == OFFSETS else 1) or not all(map(_is_json, lines)):
        return f"{name} is incomplete"
    return None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _offset(spark: SparkSession, checkpoint: str, number: int) -> dict[str, Any]:
    """Return where a batch ends: the last line of its file, which has one for each source."""
    path = f"{checkpoint}/{OFFSETS}/{number}"
    try:
        found = json.loads(_read(spark, path).splitlines()[-1])
    except (ValueError, IndexError):
        found = None
    if not isinstance(found, dict):
        raise CheckpointUnreadable(
            f"{path} does not say where a batch ends: delete the checkpoint, and run again"
        )
    return found


def _read(spark: SparkSession, path: str) -> str:
    """Read a file with Spark's own library, because the checkpoint may be where only that reaches."""
    context = spark.sparkContext
    jvm = context._jvm
    assert jvm is not None
    location = jvm.org.apache.hadoop.fs.Path(path)
    stream = location.getFileSystem(context._jsc.hadoopConfiguration()).open(location)
    try:
        return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
