"""Ingesting files: all accepted rows or none, once per job, and rejected rows are kept with the reason."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lonnymq import Queue
from lonnymq.errors import InvalidArgument

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lonnymq.pipeline.lake import Lake

LINES: list[dict[str, Any]] = [
    {"tenant": "acme", "order": 1, "wait": "5"},
    {"tenant": "beta", "order": 2, "wait": None},
    {"tenant": "", "order": 3, "wait": None},
    {"tenant": "x" * 256, "order": 4, "wait": None},
    {"tenant": "a\tb", "order": 5, "wait": None},
    {"tenant": "acme", "order": 6, "wait": "soon"},
    {"tenant": None, "order": 7, "wait": "-1"},
    {"tenant": "acme", "order": 8, "wait": "-1"},
    {"tenant": "acme", "order": 9, "wait": "5", "rank": 2},
    {"tenant": "acme", "order": 10, "wait": "9999999999999"},
    {"tenant": "acme", "order": 11, "due": "1900-01-01T00:00:00Z"},
]
REASONS = {
    3: "the channel is empty",
    4: "the channel is longer than 255 characters",
    5: "the channel contains a control character",
    6: "delay_ms cannot be parsed",
    7: "the channel is empty",
    8: "delay_ms is negative",
    9: "more than one of dequeue_at, delay_ms, priority",
    10: "delay_ms is longer than a hundred years",
    11: "dequeue_at is not in the years 2000 to 2199",
}


def write_json(path: Path, lines: list[dict[str, Any]], *more: str) -> str:
    path.write_text("\n".join([*(json.dumps(line) for line in lines), *more]) + "\n", encoding="utf-8")
    return str(path)


def dequeue_all(queue: Queue) -> list[tuple[str, Any]]:
    found = [(message.channel, message.payload) for message in queue.dequeue(limit=100)]
    return sorted(found, key=str)


def test_rows_become_messages_once_and_rejected_rows_keep_their_reason(
    spark: "SparkSession", lake: "Lake", queue: Queue, dsn: str, tmp_path: Path
) -> None:
    from lonnymq.pipeline.steps import Mapping, Source, ingest

    path = write_json(tmp_path / "orders.json", LINES, "{not json")
    mapping = Mapping(channel="Tenant", delay_ms="WAIT", priority="rank", dequeue_at="due")
    first = ingest(spark, [path], Source(dsn=dsn), lake, mapping=mapping)
    assert (first.accepted, first.rejected) == (2, 10)
    again = ingest(spark, [path], Source(dsn=dsn), lake, mapping=mapping)
    assert again == first
    rejected = lake.rejected.read(spark).collect()
    assert len(rejected) == 10
    found = {json.loads(row.record)["order"]: row.reason for row in rejected if row.record != "{not json"}
    assert found == REASONS
    [unread] = [row for row in rejected if row.record == "{not json"]
    assert unread.reason == "the line cannot be parsed"
    assert {row.job for row in rejected} == {first.job}
    assert all(row.source_file.endswith("orders.json") for row in rejected)
    status = queue.status()
    assert status.waiting == 2
    # A file of the same name with other content is another job.
    line = {"tenant": "acme", "order": 11, "wait": None, "rank": None, "due": None}
    write_json(tmp_path / "orders.json", [line])
    assert ingest(spark, [path], Source(dsn=dsn), lake, mapping=mapping).job != first.job
    assert queue.status().waiting == 3
    assert ("acme", {"order": 11}) in dequeue_all(queue)


def test_csv_and_parquet_files_are_ingested(
    spark: "SparkSession", lake: "Lake", queue: Queue, dsn: str, tmp_path: Path
) -> None:
    from lonnymq.pipeline.steps import Mapping, Source, ingest

    table = tmp_path / "rows.csv"
    table.write_text(
        'channel,body,key\nacme,"{""id"": ""007""}",k1\nacme,one,two,three\nacme,,k3\n', encoding="utf-8"
    )
    mapping = Mapping(content="body", key="key")
    done = ingest(spark, [str(table)], Source(dsn=dsn), lake, mapping=mapping, job="csv")
    assert (done.job, done.accepted, done.rejected) == ("csv", 1, 2)
    assert sorted(row.reason for row in lake.rejected.read(spark).collect()) == [
        "the content is empty",
        "the line cannot be parsed",
    ]
    frame = spark.createDataFrame(
        [("beta", 1.5, ["x"]), ("beta", None, [])], "who string, price double, tags array<string>"
    )
    frame.write.parquet(str(tmp_path / "rows.parquet"))
    done = ingest(
        spark,
        [str(tmp_path / "rows.parquet")],
        Source(dsn=dsn),
        lake,
        mapping=Mapping(to_channel="all"),
        job="parquet",
    )
    assert (done.accepted, done.rejected) == (2, 0)
    assert dequeue_all(queue) == [
        ("acme", {"id": "007"}),
        ("all", {"price": 1.5, "tags": ["x"], "who": "beta"}),
        ("all", {"price": None, "tags": [], "who": "beta"}),
    ]


def test_files_that_are_unusual_lose_no_value_and_broken_ones_are_refused(
    spark: "SparkSession", lake: "Lake", queue: Queue, dsn: str, tmp_path: Path
) -> None:
    from lonnymq.pipeline.spark_errors import SparkFailed
    from lonnymq.pipeline.steps import Mapping, Source, ingest

    def reasons(job: str) -> list[str]:
        rows = lake.rejected.read(spark).where(f"job = '{job}'").collect()
        return sorted(row.reason for row in rows)

    source = Source(dsn=dsn)
    names = "channel,c`d,_corrupt_record,part"
    tables = [tmp_path / "a [1]*.csv", tmp_path / "b {2}.csv"]
    tables[0].write_text(f'{names}\nacme,"two\nlines",1,\n', encoding="utf-8")
    tables[1].write_bytes(f"\ufeff{names.upper()}\r\nbeta,x,2,3\r\n".encode() + b"M\xfcller,y,,\r\n")
    mapping = Mapping(content="c`d")
    done = ingest(spark, [str(path) for path in tables], source, lake, mapping=mapping, job="csv")
    assert (done.accepted, reasons("csv")) == (2, ["the line cannot be parsed"])
    tables[1].write_text("part,channel\n3,beta\n", encoding="utf-8")
    with pytest.raises(SparkFailed, match="in CSV header is not equal"):
        ingest(spark, [str(path) for path in tables], source, lake, mapping=mapping, job="other headers")
    frames = [
        pa.table({"channel": [b"acme", b"\xff"], "a": [1, 2]}),
        pa.table({"channel": [b"beta", b"beta", b"beta"], "k": ["k", "q\0r", "\n"], "p": [1, 2, 2**63 - 1]}),
    ]
    for number, frame in enumerate(frames):
        pq.write_table(frame, tmp_path / f"{number}.parquet")
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    mapping = Mapping(key="k", priority="p")
    done = ingest(spark, paths, source, lake, mapping=mapping, job="parquet")
    assert done.accepted == 2
    assert reasons("parquet") == [
        "priority is more than 9000000000000000",
        "the channel is not UTF-8",
        "the key contains NUL",
    ]
    found = sorted((message.channel, message.content) for message in queue.dequeue(limit=10))
    assert found == [("acme", b"two\nlines"), ("acme", b'{"a":1}'), ("beta", b"x"), ("beta", b'{"a":null}')]
    Path(paths[0]).write_bytes(Path(paths[0]).read_bytes()[:-9])
    with pytest.raises(InvalidArgument, match="paths must be parquet files that Spark can read"):
        ingest(spark, paths, source, lake, mapping=mapping)
    with pytest.raises(InvalidArgument, match="job must be 1 to 255 characters"):
        ingest(spark, paths[1:], source, lake, job="j" * 256)
    with pytest.raises(InvalidArgument, match="to_channel must be 1 to 255 characters"):
        ingest(spark, paths[1:], source, lake, mapping=Mapping(to_channel="a\nb"))


def test_a_column_becomes_headers_and_rows_with_invalid_ones_are_rejected(
    spark: "SparkSession", lake: "Lake", queue: Queue, dsn: str, tmp_path: Path
) -> None:
    from lonnymq.pipeline.steps import Mapping, Source, ingest

    objects: dict[str, Any] = {
        "both": {"region": "eu", "lonnymq-on-buried": "failures"},
        "one": {"region": "us"},
        "none": None,
        "large": {"region": "x" * 8192},
        "nul": {"region": "a\0b"},
        "no channel": {"region": "eu", "lonnymq-on-buried": ""},
    }
    path = write_json(
        tmp_path / "rows.json", [{"channel": name, "h": given} for name, given in objects.items()]
    )
    mapping = Mapping(headers="h")
    done = ingest(spark, [path], Source(dsn=dsn), lake, mapping=mapping, job="objects")
    assert (done.accepted, done.rejected) == (3, 3)
    texts = tmp_path / "rows.csv"
    texts.write_text(
        'channel,h\ntext,"{""region"": ""asia""}"\nempty,\nlist,[1]\nwrong,region=eu\n'
        'nameless,"{"""": ""x""}"\n',
        encoding="utf-8",
    )
    done = ingest(spark, [str(texts)], Source(dsn=dsn), lake, mapping=mapping, job="texts")
    assert (done.accepted, done.rejected) == (2, 3)
    assert sorted(row.reason for row in lake.rejected.read(spark).collect()) == [
        "a header contains NUL",
        "a header's name is empty, too long, or has a control character",
        "headers cannot be parsed",
        "headers cannot be parsed",
        "lonnymq-on-buried is not a channel",
        "the headers have more than 8192 bytes",
    ]
    found = {message.channel: (message.headers, message.payload) for message in queue.dequeue(limit=10)}
    assert found == {
        "both": (objects["both"], {}),
        "one": ({"region": "us"}, {}),
        "none": ({}, {}),
        "text": ({"region": "asia"}, {}),
        "empty": ({}, {}),
    }


def test_a_missing_column_or_unknown_file_format_is_an_error(
    spark: "SparkSession", lake: "Lake", dsn: str, tmp_path: Path
) -> None:
    from lonnymq.pipeline.steps import Mapping, Source, ingest

    path = write_json(tmp_path / "orders.json", LINES[:1])
    with pytest.raises(
        InvalidArgument, match=r"no column 'who', for channel; their columns are order, tenant, wait"
    ):
        ingest(spark, [path], Source(dsn=dsn), lake, mapping=Mapping(channel="who"))
    with pytest.raises(InvalidArgument, match="paths must be files with one of the endings"):
        ingest(spark, ["orders.xml"], Source(dsn=dsn), lake)
    assert lake.rejected.version is None


def test_ingest_allows_channel_names_as_long_as_the_queue_does() -> None:
    from lonnymq.calls import argument
    from lonnymq.pipeline.ingest import MAX_NAME_LENGTH

    assert argument.channel("x" * MAX_NAME_LENGTH)
    with pytest.raises(InvalidArgument):
        argument.channel("x" * (MAX_NAME_LENGTH + 1))
