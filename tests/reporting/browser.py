"""A real browser that cannot reach a network: Debian's Chromium, driven by Playwright."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import axe_playwright_python
from playwright.sync_api import Browser, Frame, Locator, Page, sync_playwright

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
def opened(
    browser: Browser,
    file: Path,
    *,
    at: str = "",
    width: int = 1440,
    scheme: Any = "light",
    media: Any = "screen",
    known: str = "",
    beside: tuple[Path, ...] = (),
) -> Iterator[Page]:
    """A page while it is looked at; afterwards, that it complained of nothing and fetched nothing.

    `at` is what its address ends with. A complaint with `known` in it, if given, is expected; so are
    the pages `beside` it that links lead to.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 1000}, color_scheme=scheme, offline=True
    )
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.emulate_media(media=media, color_scheme=scheme)
    complaints: list[str] = []
    fetched: list[str] = []
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(file.as_uri() + at)
    try:
        page.locator("#data:not([data-state=drawn])").wait_for(state="detached")
        yield page
    finally:
        context.close()
    assert [text for text in complaints if not known or known not in text] == []
    pages = [url.split("#")[0] for url in fetched if not url.startswith(("data:", "blob:"))]
    assert pages[:1] == [file.as_uri()]
    assert set(pages[1:]) <= {page.as_uri() for page in beside}


def both(browser: Browser, results: Path, **how: Any) -> Iterator[tuple[str, Page]]:
    """The front page and the second stage's, with their names, each while it is looked at."""
    for name in ("report.html", "second/report.html"):
        with opened(browser, results / name, **how) as page:
            yield name, page


def saved(page: Page, button: Locator, folder: Path) -> Path:
    """The file that a button of the page saves."""
    with page.expect_download() as download:
        button.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def numbers(text: str) -> list[float]:
    """All numbers in a text, with any of the signs for minus."""
    found = re.findall(r"[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text)
    return [float(word.replace("−", "-")) for word in found]


def states(page: Page) -> Iterator[str]:
    """Brings every choice of every menu before the reader, one after the other; yields its name."""
    menus = page.locator("select:visible")
    yield "as opened"
    for menu in menus.all():
        values = [option.get_attribute("value") for option in menu.locator("option").all()]
        for value in values:
            menu.select_option(value)
            yield f"{menu.get_attribute('id')} = {value}"
        menu.select_option(values[0])


FIGURES = """() => [...document.querySelectorAll("svg:not(.key, .mini)")]
  .filter((figure) => figure.checkVisibility()).map((figure) => {
  const box = figure.getBoundingClientRect();
  const nodes = [figure, ...figure.querySelectorAll("*")];
  const attributes = nodes.flatMap((node) =>
    [...node.attributes].map((a) => `${node.tagName} ${a.name}=${a.value}`));
  return {
    width: box.width, height: box.height,
    marks: figure.querySelectorAll("circle, rect, path, line, polyline, polygon").length,
    broken: attributes.filter((text) => /NaN|Infinity|undefined|null/.test(text)),
  };
})"""


def figures(page: Page | Frame) -> list[dict[str, Any]]:
    """Size, number of marks and broken attributes of every figure that is to be seen."""
    found: list[dict[str, Any]] = page.evaluate(FIGURES)
    return found


def draws(page: Page) -> int:
    """Under how many choices of its menus the page's figures were looked at; each has something drawn."""
    count = 0
    for count, state in enumerate(states(page), 1):  # noqa: B007
        found = figures(page)
        assert found, state
        for figure in found:
            assert figure["width"] > 50, state
            assert figure["height"] > 20, state
            assert figure["marks"] > 0, state
            assert figure["broken"] == [], state
    return count


# Paper is white: printers leave backgrounds out. Colours go through a canvas, which knows all
# notations. https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio
CONTRAST = """(printed) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const brush = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = colour;
    brush.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data;
    return { c: [r, g, b], a: a / 255 };
  };
  const over = (top, under) => top.c.map((value, i) => value * top.a + under[i] * (1 - top.a));
  const luminance = (c) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = c.map((v) => linear(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (!printed || style.printColorAdjust === "exact") layers.push(rgba(style.backgroundColor));
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches && !printed;
    return layers.reverse().reduce((under, top) => over(top, under), dark ? [18, 18, 18] : [255, 255, 255]);
  };
  const poor = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const node = text.parentElement, range = document.createRange();
    range.selectNodeContents(text);
    if (!text.data.trim() || !range.getClientRects().length) continue;
    if (!node.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(node), size = parseFloat(style.fontSize);
    const ink = rgba(node.namespaceURI.endsWith("svg") ? style.fill : style.color);
    for (let at = node; at; at = at.parentElement) ink.a *= getComputedStyle(at).opacity;
    const ground = behind(node), [p, q] = [luminance(over(ink, ground)), luminance(ground)];
    const ratio = (Math.max(p, q) + 0.05) / (Math.min(p, q) + 0.05);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    seen += 1;
    if (ratio >= (isLarge ? 3 : 4.5)) continue;
    const place = `${node.tagName}.${node.className.baseVal ?? node.className}`;
    poor.set(place, `${ratio.toFixed(2)}: ${text.data.trim().slice(0, 40)}`);
  }
  return { seen, poor: Object.fromEntries(poor) };
}"""


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


def contrast(page: Page, *, printed: bool) -> tuple[int, dict[str, str]]:
    """How many texts are to be seen, and those with less contrast than WCAG AA asks for."""
    found = page.evaluate(CONTRAST, printed)
    return found["seen"], found["poor"]


def touch(target: Locator, tip: Locator) -> None:
    """Hovers until the tip is there: the news of an earlier scrolling may come late, and hide it."""
    for _ in range(50):
        target.page.mouse.move(0, 0)
        target.hover(force=True)
        if tip.is_visible():
            return
        target.page.wait_for_timeout(100)
    raise AssertionError("no tip")
