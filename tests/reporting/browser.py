"""A real browser that cannot reach a network: Debian's Chromium, driven by Playwright."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import Browser, Frame, Page, sync_playwright

CUT = ("unshare", "--map-root-user", "--net")
"""Runs a command in a network namespace with nothing in it, not even a loopback that is up."""


def missing() -> str | None:
    """Why there is no browser; None if there is one."""
    if shutil.which("chromium") is None:
        return "no chromium: apt-get install chromium fonts-liberation"
    return None


@contextlib.contextmanager
def launched(folder: Path) -> Iterator[Browser]:
    """Chromium without a network where the machine allows namespaces; it is told so anyway."""
    program = folder / "chromium"
    allowed = shutil.which("unshare") and subprocess.run([*CUT, "true"], capture_output=True)
    cut = " ".join(CUT) if allowed and allowed.returncode == 0 else ""
    program.write_text(f'#!/bin/sh\nexec {cut} {shutil.which("chromium")} "$@"\n')
    program.chmod(0o755)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, timeout=120_000)
        yield browser
        browser.close()


@contextlib.contextmanager
def opened(browser: Browser, file: Path, *, width: int = 1240, known: str = "") -> Iterator[Page]:
    """A page whose charts are drawn; afterwards, that it complained of nothing and fetched nothing.

    A complaint with `known` in it, if given, is expected.
    """
    context = browser.new_context(viewport={"width": width, "height": 1000}, offline=True)
    context.set_default_timeout(60_000)
    page = context.new_page()
    complaints: list[str] = []
    fetched: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(file.as_uri())
    try:
        if not known:
            drawn(page)
        yield page
    finally:
        context.close()
    assert [text for text in complaints if not known or known not in text] == []
    assert {url for url in fetched if not url.startswith(("data:", "blob:"))} == {file.as_uri()}


def drawn(page: Page | Frame) -> None:
    """Waits until all charts of a page are drawn."""
    page.locator("html[data-drawn=all]").wait_for(state="attached")


def violations(page: Page) -> tuple[int, list[str]]:
    """How many of axe's rules pass with all that can be opened open, and what keeps people from reading."""
    program = Path(axe_playwright_python.__file__).parent / "axe.min.js"
    page.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    page.evaluate(program.read_text())
    found = page.evaluate("axe.run()")
    told = [
        f"{one['id']} ({one['impact']}): {node['html'][:120]}"
        for one in found["violations"]
        for node in one["nodes"][:3]
    ]
    return len(found["passes"]), told
