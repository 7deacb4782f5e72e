"""Messages at the end of a run, to a server, a mailer and a command of the test's own."""

import http.server
import json
import threading
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

import pytest

from evaluation.errors import ConfigError
from evaluation.orchestration.notification import send
from evaluation.settings.config import validate_config
from evaluation.settings.notify import Notify

SUBJECT, TEXT = "Evaluation of run is done", "stage2: take step 1000\n  naïve ±"


class Received(http.server.BaseHTTPRequestHandler):
    """Keeps what was posted; a path names the status of the answer."""

    posted: list[tuple[str, bytes]] = []

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self.posted.append((self.path, self.rfile.read(size)))
        self.send_response(int(self.path[1:]))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(Received, "posted", [])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Received) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_webhook_gets_the_text(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", f"{address}/200")
    assert send(Notify(webhook="HOOK"), SUBJECT, TEXT) == []
    ((_, body),) = Received.posted
    assert json.loads(body) == {"text": f"*{SUBJECT}*\n{TEXT}"}


@pytest.mark.parametrize(
    ("path", "said"), [("/404", "did not take the message (404)"), ("/500", "(500)")]
)
def test_a_webhook_that_refuses(
    address: str, monkeypatch: pytest.MonkeyPatch, path: str, said: str
) -> None:
    monkeypatch.setenv("HOOK", address + path)
    (line,) = send(Notify(webhook="HOOK"), SUBJECT, TEXT)
    assert said in line
    assert "127.0.0.1" not in line


@pytest.mark.parametrize("value", ["", "nowhere", "http://127.0.0.1:1/x"])
def test_a_webhook_that_is_not_there(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("HOOK", value)
    (line,) = send(Notify(webhook="HOOK"), SUBJECT, TEXT)
    assert line.startswith("notify.webhook: the")
    assert not value or value not in line


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_an_e_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin", "sendmail", f'echo "$@" > {tmp_path}/options; cat > {tmp_path}/mail')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert send(Notify(email=("a@b.org", "c@d.org")), SUBJECT, TEXT) == []
    mail = message_from_bytes((tmp_path / "mail").read_bytes())
    assert (mail["To"], mail["Subject"]) == ("a@b.org, c@d.org", SUBJECT)
    body = mail.get_payload(decode=True)
    assert isinstance(body, bytes)
    assert body.decode().strip() == TEXT
    assert (tmp_path / "options").read_text() == "-t -i\n"


def test_a_command(tmp_path: Path) -> None:
    settings = Notify(command=f"cat > {tmp_path}/message")
    assert send(settings, SUBJECT, TEXT) == []
    assert (tmp_path / "message").read_text() == f"{SUBJECT}\n{TEXT}\n"


@pytest.mark.parametrize(
    ("command", "seconds", "said"),
    [
        ("echo no such channel >&2; exit 3", 30, "notify.command: exit code 3 (no such channel)"),
        ("exit 1", 30, "notify.command: exit code 1"),
        ("sleep 60", 0.2, "notify.command: not done after 0.2 seconds, and stopped"),
    ],
)
def test_what_fails_is_one_sentence(command: str, seconds: float, said: str) -> None:
    assert send(Notify(command=command, seconds=seconds), SUBJECT, TEXT) == [said]


@pytest.mark.parametrize(
    ("notify", "said"),
    [
        ({"webhook": "https://hooks.slack.com/services/T/B/secret"}, "the name of an environment"),
        ({"email": ["a@b@c"]}, "is not one e-mail address"),
        ({"email": ["a@b.org\nBcc: x@y.org"]}, "is not one e-mail address"),
        ({"command": ""}, "notify.command"),
    ],
)
def test_settings_that_cannot_be(notify: dict[str, object], said: str) -> None:
    stage = {"checkpoints": "ckpts", "steps": [1], "suites": ["base"]}
    raw = {"results": "r", "cache": "c", "stages": {"one": stage}, "notify": notify}
    with pytest.raises(ConfigError, match=said):
        validate_config(raw, "config.yaml")
