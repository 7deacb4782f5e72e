"""A server of a folder of results for one reader, on this machine only: pages, files, and all items.

It reads, and never writes. Addresses begin with a secret, as others may use the machine, too. Hidden files
are not served: `.config` may hold secrets of a `command`.
"""

import json
import logging
import mimetypes
import secrets
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qs, quote, unquote, urlsplit

from evaluation.errors import ConfigError, EvaluationError
from evaluation.reporting.pages.page import ENVIRONMENT
from evaluation.reporting.viewer.items import (
    Query,
    ShownItem,
    Which,
    as_json,
    checkpoints_of,
    read_items,
    stage_tasks,
)
from evaluation.settings.plan import StagePlan
from evaluation.settings.tiers import TIERS

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
ITEMS = "-"
"""First part of the addresses of items; no stage is called so."""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
REMEMBERED = 6
"""Tasks of checkpoints whose items stay in memory."""


class HttpAnswer(Exception):
    """An answer other than the requested one, with its status and a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Viewer:
    """What there is to see: a folder of results, outside of which nothing is served, and its items."""

    def __init__(self, folder: Path, plans: Mapping[str, StagePlan]) -> None:
        self.folder, self.plans = folder.resolve(), plans
        self.secret = secrets.token_urlsafe(12)
        self._items = lru_cache(REMEMBERED)(self._read_items)

    def answer(self, target: str) -> tuple[str, bytes]:
        """Return type and content of what an address names.

        Raises:
            Answer: There is no such thing.
        """
        parts = urlsplit(target)
        secret, _, path = unquote(parts.path).removeprefix("/").partition("/")
        if not secrets.compare_digest(secret.encode(), self.secret.encode()):
            raise HttpAnswer(
                HTTPStatus.NOT_FOUND, "open the address that `view` printed, with its secret"
            )
        if path == ITEMS or path.startswith(f"{ITEMS}/"):
            asked = {name: values[-1] for name, values in parse_qs(parts.query).items()}
            return self._of_items(path.removeprefix(ITEMS).strip("/").split("/"), asked)
        return self._file(path or "report.html")

    def _file(self, path: str) -> tuple[str, bytes]:
        wanted = (self.folder / path).resolve()
        is_hidden = any(part.startswith(".") for part in Path(path).parts)
        if is_hidden or not wanted.is_relative_to(self.folder) or not wanted.is_file():
            raise HttpAnswer(HTTPStatus.NOT_FOUND, f"{path}: no such file among the results")
        with open(wanted, "rb") as file:
            content = file.read()
        if wanted.name == "report.html":
            content = content.replace(b"<main>", f"<main>{_link(path)}".encode(), 1)
        kind = mimetypes.guess_type(wanted.name)[0] or "text/plain"
        is_text = kind.startswith("text/") or wanted.suffix in (".jsonl", ".json", ".log")
        return f"{kind if is_text else 'application/octet-stream'}; charset=utf-8", content

    def _of_items(self, parts: list[str], asked: Mapping[str, str]) -> tuple[str, bytes]:
        if parts == [""]:
            tasks = {name: list(stage_tasks(plan)) for name, plan in self.plans.items()}
            return _page("items_index.html", stages=tasks, tiers=TIERS)
        if len(parts) != 3 or parts[0] not in self.plans:
            raise HttpAnswer(HTTPStatus.NOT_FOUND, "no such stage, tier and task")
        stage, tier, task = parts
        checkpoints = checkpoints_of(self.plans[stage])
        if "checkpoint" in asked:
            items = self._items(stage, asked["checkpoint"], tier, task)
            return "application/json", json.dumps(as_json(items, _query(asked))).encode()
        about = {"stage": stage, "tier": tier, "task": task, "checkpoints": checkpoints}
        title = TIERS[tier].title if tier in TIERS else tier
        return _page("items.html", **about, tier_title=title, which=get_args(Which))

    def _read_items(self, stage: str, checkpoint: str, tier: str, task: str) -> list[ShownItem]:
        return read_items(self.plans[stage], checkpoint, tier, task)


def _link(path: str) -> str:
    """Return a link from a page at this path to all items."""
    up = "../" * path.count("/")
    return f'<p><a href="{up}{ITEMS}/">Every question, answer and block of text of every checkpoint</a></p>'


def _query(asked: Mapping[str, str]) -> Query:
    """Read a query from an address; raise Answer where it is none."""
    which = asked.get("which", "all")
    first = asked.get("first", "0")
    if which not in get_args(Which) or not first.isdecimal():
        raise HttpAnswer(HTTPStatus.BAD_REQUEST, f"{which!r}, {first!r}: no filter of items")
    return Query(
        which=which,  # type: ignore[arg-type]
        text=asked.get("text", ""),
        id=asked.get("id", ""),
        first=int(first),
    )


def _page(template: str, **values: Any) -> tuple[str, bytes]:
    text = ENVIRONMENT.get_template(template).render(**values)
    return "text/html; charset=utf-8", text.encode()


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; only the machine's own browser, and only to read."""

    server: "_ViewerServer"
    server_version, sys_version = "staged-evaluation", ""

    def do_GET(self) -> None:
        """Answer with a page, a file or items."""
        kind, content, status = "text/plain; charset=utf-8", b"", HTTPStatus.OK
        try:
            if (self.headers.get("Host") or "").rpartition(":")[0] not in (HOST, "localhost"):
                raise HttpAnswer(
                    HTTPStatus.FORBIDDEN, "this server answers only to its own machine"
                )
            kind, content = self.server.viewer.answer(self.path)
        except HttpAnswer as error:
            status, content = error.status, f"{error}\n".encode()
        except EvaluationError as error:
            is_wrong = isinstance(error, ConfigError)
            status = HTTPStatus.NOT_FOUND if is_wrong else HTTPStatus.INTERNAL_SERVER_ERROR
            content = f"{error}\n".encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(content))),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *values: Any) -> None:
        """Log a request where more is to be logged."""
        log.debug(format, *values)


class _ViewerServer(ThreadingHTTPServer):
    """Serves a viewer."""

    daemon_threads = True

    def __init__(self, viewer: Viewer, port: int) -> None:
        self.viewer = viewer
        super().__init__((HOST, port), _Handler)


def make_server(viewer: Viewer, port: int) -> tuple[ThreadingHTTPServer, str]:
    """Return a server on the loopback interface, and the address to open; port 0 is any free one.

    Raises:
        ConfigError: The port is taken, or not allowed.
    """
    try:
        server = _ViewerServer(viewer, port)
    except OSError as error:
        raise ConfigError(
            f"--port {port}: {error.strerror}; give another one, or 0 for any that is free"
        ) from None
    return server, f"http://{HOST}:{server.server_port}/{quote(viewer.secret)}/"
