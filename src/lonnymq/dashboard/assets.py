"""Files that pages refer to: style, scripts, icon. Their addresses change with their contents."""

import hashlib
from dataclasses import dataclass
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response

from lonnymq import charts

KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}
# The newest contents are kept for a year, because other contents have another address.
FOREVER = "private, max-age=31536000, immutable"


@dataclass(frozen=True)
class Asset:
    content: bytes
    kind: str
    version: str


def _read() -> dict[str, Asset]:
    found = {}
    for file in resources.files(__package__).joinpath("static").iterdir():
        suffix = file.name.rpartition(".")[2]
        if suffix in KINDS:
            found[f"/static/{file.name}"] = _asset(file.read_bytes(), suffix)
    found["/static/charts.css"] = _asset(charts_style(), "css")
    return found


def _asset(content: bytes, suffix: str) -> Asset:
    return Asset(content, KINDS[suffix], hashlib.sha256(content).hexdigest()[:12])


def charts_style() -> bytes:
    return resources.files(charts).joinpath("style.css").read_bytes()


ASSETS = _read()


def asset_response(path: str, request: Request) -> Response:
    asset = ASSETS[path]
    is_current = request.query_params.get("v") == asset.version
    headers = {"Cache-Control": FOREVER if is_current else "no-cache"}
    return Response(asset.content, media_type=asset.kind, headers=headers)


def asset_path(name: str) -> str:
    """Return the path of an asset below the dashboard's root, with its version."""
    return f"/static/{name}?v={ASSETS[f'/static/{name}'].version}"
