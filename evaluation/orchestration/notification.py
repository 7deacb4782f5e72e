"""The message at the end of a run: sent by a webhook, by e-mail, or to any command."""

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import EmailMessage

from evaluation.settings.notify import Notify

SENDMAIL_FOLDERS = "/usr/sbin:/usr/lib:/sbin"
"""Where `sendmail` often is without being on a user's PATH."""


def send(settings: Notify, subject: str, text: str) -> list[str]:
    """Send a message by all that is configured; return a sentence for each way that failed."""
    return [*_webhook(settings, subject, text), *_email(settings, subject, text),
            *_command(settings, subject, text)]  # fmt: skip


def _webhook(settings: Notify, subject: str, text: str) -> Iterator[str]:
    if settings.webhook is None:
        return
    address = settings.webhook_address
    if address is None:
        yield f"notify.webhook: the variable {settings.webhook} is not set, so no message was sent"
        return
    body = json.dumps({"text": f"*{subject}*\n{text}"}).encode()
    try:
        request = urllib.request.Request(
            address, data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=settings.seconds):
            pass
    except (OSError, ValueError) as error:  # the address is a secret and is not shown
        reason = error.code if isinstance(error, urllib.error.HTTPError) else type(error).__name__
        yield f"notify.webhook: the address in {settings.webhook} did not take the message ({reason})"


def _email(settings: Notify, subject: str, text: str) -> Iterator[str]:
    if not settings.email:
        return
    program = shutil.which("sendmail") or shutil.which("sendmail", path=SENDMAIL_FOLDERS)
    if program is None:
        yield "notify.email: this machine has no `sendmail`, so no message was sent"
        return
    message = EmailMessage()
    message["Subject"], message["To"] = subject, ", ".join(settings.email)
    message.set_content(text)
    yield from _run("notify.email", [program, "-t", "-i"], message.as_bytes(), settings.seconds)


def _command(settings: Notify, subject: str, text: str) -> Iterator[str]:
    if settings.command is not None:
        content = f"{subject}\n{text}\n".encode()
        line = ["/bin/sh", "-c", settings.command]
        yield from _run("notify.command", line, content, settings.seconds)


def _run(key: str, line: list[str], content: bytes, seconds: float) -> Iterator[str]:
    """Run a program on the message; yield why it failed."""
    try:
        ended = subprocess.run(
            line, input=content, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        yield f"{key}: not done after {seconds:g} seconds, and stopped"
    except OSError as error:
        yield f"{key}: {error.strerror}"
    else:
        if ended.returncode:
            last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            yield f"{key}: exit code {ended.returncode}" + (f" ({last[:200]})" if last else "")
