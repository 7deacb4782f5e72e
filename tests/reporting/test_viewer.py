"""All items in a browser: they are those of the files, only for this machine, and nothing else is served."""

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from urllib.parse import quote, urlsplit

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, Page, Route

from evaluation.__main__ import main
from evaluation.commands import view
from evaluation.errors import ConfigError
from evaluation.reporting.viewer.items import Query, checkpoints_of, read_items
from evaluation.reporting.viewer.server import POLICY, Viewer, make_server
from evaluation.settings.plan import StagePlan
from tests.reporting.browser import violations
from tests.workflow.world import World

Get = Callable[..., http.client.HTTPResponse]


@pytest.fixture(scope="module")
def plan(tiny_world: World) -> StagePlan:
    return tiny_world.plans["stage2"]


@pytest.fixture(scope="module")
def address(tiny_world: World) -> Iterator[str]:
    server, address = make_server(Viewer(tiny_world.results(), tiny_world.plans), 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def get(address: str) -> Get:
    parts = urlsplit(address)

    def ask(path: str, host: str = parts.netloc, method: str = "GET") -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(parts.netloc)
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", host)
        connection.endheaders()
        return connection.getresponse()

    return ask


def test_every_scored_question_is_there_with_its_scores(plan: StagePlan) -> None:
    for checkpoint in checkpoints_of(plan):
        folder = (
            plan.bridge_folder
            if checkpoint == "bridge"
            else plan.results / "by_checkpoint" / checkpoint
        )
        rows = pq.read_table(folder / "tier3_cf_candidates.parquet").to_pylist()
        for task in {row["task"] for row in rows}:
            own = [row for row in rows if row["task"] == task]
            items = read_items(plan, checkpoint, "tier3", task)
            assert [item.id for item in items] == list(dict.fromkeys(row["item"] for row in own))
            assert [c.logprob for item in items for c in item.choices] == [
                r["logprob"] for r in own
            ]
            assert [c.is_right for item in items for c in item.choices] == [r["gold"] for r in own]
            summary = json.loads((folder / "tier3_cf.json").read_text())["tasks"][task]
            mean = sum(item.score or 0 for item in items) / len(items)
            assert mean == pytest.approx(summary["accuracy"])


def test_every_block_is_there_with_its_loss_and_whole_text(plan: StagePlan) -> None:
    rows = pq.read_table(plan.step_folder(15) / "tier2_ppl_blocks.parquet").to_pylist()
    for name in {row["slice"] for row in rows}:
        own = [row for row in rows if row["slice"] == name]
        items = read_items(plan, "step_15", "tier2", name)
        assert [item.id for item in items] == [f"block {row['block']}" for row in own]
        expected = [row["nats"] / row["tokens"] for row in own]
        assert [item.score for item in items] == pytest.approx(expected)
        before = {item.id: item.score for item in read_items(plan, "bridge", "tier2", name)}
        assert {item.id: item.before for item in items} == before
        assert all(len(item.prompt) > 50 for item in items)
        better = [item for item in items if (item.score or 0) < (item.before or 0)]
        assert Query(which="better").select(items) == better
        assert Query(which="wrong").select(items) == []


def test_filters_count_what_changed(plan: StagePlan) -> None:
    items = read_items(plan, "step_15", "tier3", next(iter(plan.suite.tasks)))
    before = read_items(plan, "bridge", "tier3", next(iter(plan.suite.tasks)))
    changed = [a.id for a, b in zip(items, before, strict=True) if a.score != b.score]
    assert [item.id for item in Query(which="changed").select(items)] == changed
    wrong, right = (Query(which=which).select(items) for which in ("wrong", "right"))
    assert len(wrong) + len(right) == len(items)
    words = items[0].prompt.split()
    assert items[0] in Query(text=" ".join(words[:3]).upper()).select(items)
    assert Query(text="no such words anywhere").select(items) == []
    assert Query(id=items[1].id).select(items) == [items[1]]


def test_a_stage_without_a_bridge_has_items_too(tiny_world: World) -> None:
    plan = tiny_world.plans["stage1"]
    assert checkpoints_of(plan) == ["step_10", "step_20"]
    items = read_items(plan, "step_20", "tier3", next(iter(plan.suite.tasks)))
    assert items
    assert {item.before for item in items} == {None}


def test_what_there_is_not_is_named(plan: StagePlan) -> None:
    with pytest.raises(ConfigError, match="step_15"):
        read_items(plan, "step_99", "tier3", "none")
    with pytest.raises(ConfigError, match="no task"):
        read_items(plan, "step_15", "tier3", "none")


def test_only_results_are_served(tiny_world: World, address: str, get: Get) -> None:
    secret = urlsplit(address).path
    assert get(f"{secret}stage2/recommendation.json").status == 200
    hidden = tiny_world.results() / ".config" / "other" / "secret.yaml"
    hidden.parent.mkdir(parents=True, exist_ok=True)
    hidden.write_text("command: secret")
    (tiny_world.results() / "out").symlink_to(tiny_world.config)
    outside = f"../{tiny_world.config.name}"
    for path in (
        outside,
        quote(outside, safe=""),
        ".config/other/secret.yaml",
        "out",
        "stage2",
        "none",
    ):
        assert get(f"{secret}{path}").status == 404, path
    assert get("/report.html").status == 404
    assert get("/wrong/report.html").status == 404
    assert get(secret, host="evil.example:80").status == 403
    for method in ("POST", "PUT", "DELETE"):
        assert get(secret, method=method).status == 501
    (tiny_world.results() / "out").unlink()


@pytest.fixture
def page(browser: Browser, tiny_world: World) -> Iterator[Page]:
    """A page of the viewer in a browser without a network, whose requests the viewer answers."""
    viewer = Viewer(tiny_world.results(), tiny_world.plans)

    def fulfil(route: Route) -> None:
        kind, content = viewer.answer(route.request.url.removeprefix("http://viewer"))
        route.fulfill(content_type=kind, body=content, headers={"Content-Security-Policy": POLICY})

    context = browser.new_context(base_url=f"http://viewer/{viewer.secret}/")
    context.route("http://viewer/**", fulfil)
    page = context.new_page()
    yield page
    context.close()


def waits_for(page: Page, items: int) -> None:
    page.wait_for_function(
        "n => document.querySelectorAll('article').length === n", arg=min(50, items)
    )


def test_items_are_read_filtered_and_linked(page: Page, plan: StagePlan) -> None:
    task = next(iter(plan.suite.tasks))
    items = read_items(plan, "step_15", "tier3", task)
    page.goto(f"-/stage2/tier3/{task}#checkpoint=step_15")
    page.locator("body[data-state=drawn]").wait_for()
    waits_for(page, len(items))
    first = page.locator("article").first
    assert items[0].prompt.strip() in (first.locator("pre").first.text_content() or "")
    assert first.locator("tbody tr").count() == len(items[0].choices)
    page.locator("#which").select_option("wrong")
    waits_for(page, len(Query(which="wrong").select(items)))
    assert page.url.endswith("#checkpoint=step_15&which=wrong")
    page.locator("#which").select_option("all")
    waits_for(page, len(items))
    page.get_by_role("link", name=f"link to {items[1].id}", exact=True).click()
    waits_for(page, 1)
    assert page.locator("article").get_attribute("data-id") == items[1].id
    assert violations(page)[1] == []


@pytest.mark.parametrize(
    ("link", "said"), [("/tier4/", "the model's answer"), ("stage2/tier2/", "nats per token")]
)
def test_from_the_index_to_a_chat_or_a_block(page: Page, link: str, said: str) -> None:
    page.goto("-/")
    assert violations(page)[1] == []
    page.locator(f"a[href*='{link}']").first.click()
    page.locator("body[data-state=drawn]").wait_for()
    assert said in page.locator("article").first.inner_text()
    assert violations(page)[1] == []


def test_view_prints_the_address_and_ends(
    tiny_world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("http.server.ThreadingHTTPServer.serve_forever", interrupted)
    assert main(["view", str(tiny_world.results()), "--config", str(tiny_world.config)]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out
    other = tiny_world.results().parent
    assert main(["view", str(other), "--config", str(tiny_world.config)]) == 1
    assert "is not the configuration of these results" in capsys.readouterr().err
    assert view.__doc__
