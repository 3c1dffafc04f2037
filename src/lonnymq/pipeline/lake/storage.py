"""Where a lake is: a directory, or a place in an object store.

Deltalake reads credentials, region and endpoint from the environment (`AWS_ACCESS_KEY_ID`, `AWS_REGION`,
`AWS_ENDPOINT_URL` and so on), on the driver; executors write with pyarrow, which is given the same here.
"""

import os
from typing import Any
from urllib.parse import urlsplit

S3_SCHEMES = ("s3", "s3a")
# By default, pyarrow repeats a request after three seconds; then a busy store may complete an upload twice,
# of which the second time fails.
REQUEST_TIMEOUT_S = 60.0


def is_local(root: str) -> bool:
    return "://" not in root


def open_location(root: str) -> tuple[Any, str]:
    """Return pyarrow's file system for a directory or URL, and the path in it."""
    from pyarrow import fs

    if is_local(root):
        return fs.LocalFileSystem(), root
    scheme, _, path = root.partition("://")
    if scheme not in S3_SCHEMES:
        files, path = fs.FileSystem.from_uri(root)
        return files, path
    endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None and not endpoint.netloc:
        region = fs.resolve_s3_region(path.partition("/")[0])
    given = {"region": region, "endpoint_override": endpoint.netloc, "scheme": endpoint.scheme}
    settings = {name: value for name, value in given.items() if value}
    return fs.S3FileSystem(request_timeout=REQUEST_TIMEOUT_S, **settings), path
