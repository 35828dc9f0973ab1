"""The pages in a real browser: Debian's Chromium, driven by Playwright.

Every page is checked for script errors, refused resources and axe's rules, on a desktop and a
phone, in light and in dark. ``TOPSECRET_SCREENSHOTS=1`` keeps a picture of each in
``build/screenshots``, to look at.
"""

import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from every_state import (
    CHOSEN_BY,
    ITEMS,
    NAME,
    RIGHT_TO_LEFT,
    in_every_state,
    with_six_filters,
)
from page_looks import (
    AXE,
    BARS,
    DESKTOP,
    LOOKED_AT,
    ONE_LINE,
    PHONE,
    PICTURES,
    RULES,
    SCREENSHOTS,
    WIDER,
    shoot,
)
from playwright.sync_api import Browser, Route, expect, sync_playwright
from serving import PASSWORD, PATIENCE, PLACES, SHOP, Here, Server, write_events, write_table
from visitors import first_run, log_in, signed_in, visiting

from topsecret.accounting import zcdp
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.ledger import Ledger, Price, Request
from topsecret.service.app import ROUTERS
from topsecret.service.databases import Databases

expect.set_options(timeout=1000 * PATIENCE)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program, "Chromium is missing; run make test, which installs it"
    with sync_playwright() as playwright:
        patience = 1000 * PATIENCE
        started = playwright.chromium.launch(executable_path=program, args=FLAGS, timeout=patience)
        yield started
        started.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("browser")
    (folder / "files").mkdir()
    write_events(folder / "files" / "events.csv", PLACES)
    address = f"sqlite:///{folder / SHOP}"
    write_table(address, PLACES)
    provider = ("--openid-issuer", "https://login.example.org", "--openid-client", "topsecret")
    running = Server(folder, "--source", f"shop={address}", *provider)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def sessions(browser: Browser, server: Server) -> dict[str, Any]:
    """The first run, by the owner's hand: everybody's session, and PASSWORD is their password."""
    return first_run(browser, server)


def test_the_set_up_link_works_once(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    with visiting(browser, server) as page:
        page.goto(server.set_up_link)
        page.wait_for_url("**/login")


def test_a_wrong_password_is_refused_kindly(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    # Chromium reports the 401 itself; a script could not keep it from doing so.
    with visiting(browser, server, allow=("401",)) as page:
        log_in(page, "ann", "not her password")
        assert "do not match" in page.get_by_role("alert").inner_text()
        shoot(page, "login-wrong")
        assert page.context.cookies(server.address)
        names = {cookie["name"] for cookie in page.context.cookies(server.address)}
        assert "topsecret_session" not in names


def test_an_analyst_asks_with_the_keyboard_and_sees_the_answer(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    with visiting(browser, server) as page:
        page.goto("/login")
        shoot(page, "login")
        log_in(page, "ann", PASSWORD)
        page.wait_for_url(f"{server.address}/")
        page.get_by_role("link", name="Events in the city").wait_for()
        shoot(page, "home")
        page.get_by_role("link", name="Events in the city").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/datasets/events")
        plan, takes = page.locator("#plan"), page.locator("[data-of=takes]")
        expect(takes).not_to_have_text("–")
        first = takes.inner_text()
        page.get_by_label("How many").fill("4")
        slider = page.locator("#step")
        slider.focus()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#epsilon").inner_text() == "ε = 0.7"
        expect(takes).not_to_have_text(first)
        expect(plan).to_have_attribute("aria-busy", "false")
        assert "95% probability" in plan.inner_text()
        expect(plan.locator("[data-of=again]")).to_contain_text("like this one")
        shoot(page, "ask")
        held: list[Route] = []
        page.route("**/plan", lambda route: held.append(route))
        page.get_by_label("How many").fill("5")
        go = page.locator("#go")
        expect(go).to_be_disabled()  # nothing is asked before its numbers are there,
        expect(takes).to_have_text("–")  # and no other question's are shown
        expect(plan.locator(".spin")).to_be_visible()
        page.get_by_label("How many").fill("4")
        expect(go).to_be_enabled()
        expect(plan.locator(".spin")).not_to_be_visible()
        page.unroute("**/plan")
        page.get_by_label("How many").fill("")
        expect(plan.locator("[data-of=answer]")).to_contain_text("How many: ")  # and what is wrong
        expect(plan.locator(".spin")).not_to_be_visible()
        page.get_by_label("How many").fill("4")
        expect(go).to_be_enabled()
        page.get_by_role("button", name="Ask").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/answers/*")
        page.get_by_role("heading", name="Receipt").wait_for()
        labels = page.locator(".bars .label").all_inner_texts()
        assert labels == ["Harbour", "Market", "Library", "Castle"]
        assert page.get_by_text("Guarantee", exact=True).is_visible()
        shoot(page, "answer")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download CSV").click()
        text = Path(download.value.path()).read_text(encoding="utf-8")
        assert text.splitlines()[1] == "1,Harbour"
        with page.expect_download() as download:
            page.get_by_role("link", name="Download JSON").click()
        page.goto("/answers")
        page.get_by_role("link", name="Top 4 of place").wait_for()
        shoot(page, "history")
        page.get_by_role("link", name="Saved questions").click()
        page.get_by_text("Nothing saved yet").wait_for()
        page.get_by_role("link", name="To your answers").click()
        page.locator(".rows a").first.click()
        page.get_by_text("Save this question").click()
        page.get_by_label("Name, to ask it again by").fill("every-monday")
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_role("button", name="Ask every-monday again").wait_for()
        page.get_by_label("Schedule every-monday", exact=True).click()
        page.get_by_label("At most this many times").fill("1")
        shoot(page, "schedule")
        page.get_by_role("button", name="Pay and schedule").click()
        # What is due is asked at the next look; its data are as they were, and its answer is free.
        deadline = time.monotonic() + PATIENCE
        while not page.get_by_role("link", name="The latest answer").is_visible():
            assert time.monotonic() < deadline
            page.reload()
        shoot(page, "saved")
        page.goto("/docs")
        expect(page.get_by_role("main")).not_to_contain_text("``")
        shoot(page, "docs")


def test_the_data_may_decide_how_many(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    with visiting(browser, server, sessions["ann"]) as page:
        page.goto("/datasets/events")
        page.get_by_label("How long a list").select_option("auto")
        page.get_by_label("With noisy counts").check()
        page.get_by_role("button", name="Ask").click()
        # For a tick; a slow machine may come to the page after it (test_time.py stops the clock).
        page.get_by_text("Counting people").or_(page.get_by_text("Receipt")).first.wait_for()
        page.get_by_role("heading", name="Receipt").wait_for()
        page.get_by_text("As a table").click()
        shoot(page, "answer-auto")
        first = page.locator("#table1 tbody tr").first
        counts = page.get_by_role("button", name="Count", exact=True)
        counts.click()
        assert "Castle" in first.inner_text()
        counts.click()
        assert "Harbour" in first.inner_text()
        assert page.locator("#table1 th").nth(2).get_attribute("aria-sort") == "descending"
        with page.expect_download() as download:
            page.get_by_role("button", name="Download PNG").click()
        picture = Path(download.value.path())
        assert download.value.suggested_filename.endswith(".png")
        assert (
            page.evaluate(BARS, [*picture.read_bytes()]) == page.locator("#table1 td bdi").count()
        )
        if PICTURES:
            shutil.copy(picture, SCREENSHOTS / "chart.png")


def test_a_query_is_previewed_and_its_refusal_names_the_clause(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    query = (
        "SELECT colour, COUNT(DISTINCT user) AS n FROM t GROUP BY colour ORDER BY n DESC LIMIT 1"
    )
    # Chromium reports the 400 of the preview.
    with visiting(browser, server, sessions["ann"], allow=("400",)) as page:
        page.goto("/datasets/events")
        page.get_by_text("In SQL instead").click()
        written, said = page.locator("textarea"), page.locator("[data-of=answer]")
        written.fill(query.replace("COUNT(DISTINCT user)", "AVG(user)"))
        expect(said).to_contain_text("AVG")
        expect(page.locator("#go")).to_be_disabled()
        written.fill(query)
        expect(page.locator("[data-of=takes]")).not_to_have_text("–")
        shoot(page, "ask-sql")
        page.get_by_role("button", name="Ask").click()
        page.get_by_role("heading", name="Receipt").wait_for()
        assert page.locator(".bars .label").all_inner_texts() == ["red"]
        page.get_by_text("The query").click()
        assert page.locator("pre").inner_text() == query
        shoot(page, "answer-sql")


def test_no_condition_is_cut_off_a_question(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    with_six_filters(server)
    # Chromium reports the 422 of the preview and of the question.
    with visiting(browser, server, sessions["ann"], allow=("422",)) as page:
        page.goto("/datasets/six")
        page.get_by_text("Only some rows").click()
        said, go = page.locator("[data-of=answer]"), page.locator("#go")
        for column in CHOSEN_BY:
            page.locator(f"[name='value:{column}']").fill("1")
        expect(said).to_contain_text("at most 5 conditions")
        expect(go).to_be_disabled()
        page.locator("[name='value:f']").fill("")
        expect(go).to_be_enabled()
        page.locator("[name='value:e']").fill("")
        page.locator("[name='value:e']").press_sequentially("1" * 501)  # as a hand types it
        expect(said).to_contain_text("at most 500 characters")
        expect(go).to_be_disabled()
        page.evaluate("document.querySelector('#go').disabled = false")
        page.get_by_role("button", name="Ask").click()
        page.get_by_text("at most 500 characters").wait_for()


def test_a_budget_that_is_used_up_says_so(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    with visiting(browser, server, sessions["bob"]) as page:
        page.goto("/datasets/events")
        page.get_by_label("How many").fill("2")
        expect(page.locator("[data-of=takes]")).to_contain_text("more than is left")
        expect(page.locator("#go")).to_be_disabled()
        shoot(page, "ask-too-much")
        page.evaluate("document.querySelector('#go').disabled = false")
        page.get_by_role("button", name="Ask").click()
        page.get_by_text("Your budget does not cover this").wait_for()
        shoot(page, "refused")


def test_what_is_in_doubt_is_written_off_after_a_second_look(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    ledger = Ledger(server.folder / "service.db")
    question = {"asked by": "a program that was cut short"}
    unit = PrivacyUnit(person="user")
    ledger.reserve(Request("events", Price(zcdp(0.001)), question, unit, analyst="ann"))
    ledger.close()
    with visiting(browser, server, sessions["olga"]) as page:
        page.goto("/owner")
        page.get_by_role("link", name="1 reservation without an end").click()
        shoot(page, "owner-in-doubt-one")
        page.locator("summary").click()
        shoot(page, "owner-in-doubt-sure")
        page.get_by_role("button", name="write it off").click()
        page.get_by_text("All is settled").wait_for()


def test_another_analysts_answer_is_not_shown(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    with visiting(browser, server, sessions["ann"]) as page:
        page.goto("/datasets/events")
        page.get_by_label("How many").fill("3")
        page.get_by_role("button", name="Ask").click()
        page.wait_for_url("**/answers/*")
        address = page.url
    with visiting(browser, server, sessions["bob"], allow=("404",)) as page:
        page.goto(address)
        assert page.get_by_role("heading", name="Nothing here").is_visible()
        shoot(page, "problem")


def test_every_state_and_the_longest_names_fit(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    answers, begun = in_every_state(server), time.time() + 1
    with visiting(browser, server, sessions["ann"]) as page:
        page.goto("/datasets/fixed")
        page.get_by_text("The owner fixed the price").wait_for()
        expect(page.locator("[data-of=takes]")).not_to_have_text("–")
        shoot(page, "ask-fixed")
        page.goto("/")
        shoot(page, "names-home")
        page.goto("/datasets/names")
        page.get_by_text("One list for each group").click()
        page.get_by_label("Groups by").select_option(RIGHT_TO_LEFT)
        page.get_by_label("The groups").fill("0, 1, none")
        page.get_by_label("How many").fill("5")
        page.get_by_label("With noisy counts").check()
        page.locator("#step").press("End")
        page.locator("#step").press("ArrowLeft")
        expect(page.locator("#epsilon")).to_have_text("ε = 3")
        expect(page.locator("[data-of=answer]")).to_contain_text("for each of 3 groups")
        expect(page.locator("[data-of=takes]")).to_contain_text("of your allowance")
        shoot(page, "names-ask")
        page.get_by_role("button", name="Ask").click()
        page.get_by_role("heading", name="Receipt").wait_for()
        page.get_by_text("Receipt of this list").first.click()
        shoot(page, "names-groups")
        assert page.locator(".bars").count() == 2
        assert page.get_by_text("Nothing could be named safely").count() == 1
        assert page.get_by_role("button", name="Download PNG").count() == 2
        said = {
            "hundred": "Receipt",
            "nothing": "Nothing could be named safely",
            "working": "Counting people",
            "failed": "The data could not be read. Nothing was charged.",
            "in-doubt": "This question is in doubt",
        }
        for name, identity in answers.items():
            page.goto(f"/answers/{identity}")
            page.get_by_text(said[name]).first.wait_for()
            if name == "hundred":
                labels = page.locator(".bars .label").all_inner_texts()
                assert (len(labels), set(ITEMS) - set(labels)) == (100, set())
            if name == "working":  # since it was asked, not since the page was opened
                seconds = page.locator("#elapsed")
                expect(seconds).to_contain_text("so far")
                assert int(seconds.inner_text().split()[0]) >= int(time.time() - begun)
            shoot(page, f"state-{name}")
            if name == "hundred":
                page.set_viewport_size(PHONE)  # type: ignore[arg-type]
                page.get_by_text("As a table").click()
                assert not page.evaluate(WIDER)
                assert page.locator(".sorted .number").nth(1).evaluate(ONE_LINE)
                assert page.locator(".sorted th button").nth(2).evaluate(ONE_LINE)
                page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
        for path in ("/answers", "/saved", f"/saved/{NAME}/schedule", "/account"):
            page.goto(path)
            if path == "/answers":
                assert page.get_by_role("link", name="Older").is_visible()
            shoot(page, f"names{path.replace('/', '-')}")
    with visiting(browser, server, sessions["olga"]) as page:
        page.goto(f"/answers/{answers['failed']}")
        page.get_by_text("Cause, for owners alone").wait_for()
        shoot(page, "names-cause")
        page.goto("/owner/analysts")
        page.get_by_text(f"1 API key of {NAME}").click()
        page.get_by_label(f"Remove {NAME}").click()
        shoot(page, "names-owner-analysts")
        for path in (
            "/owner",
            "/owner/datasets/names",
            "/owner/datasets/names/edit",
            "/owner/audit",
            "/owner/new",
            "/owner/new?file=names.csv",
            "/owner/in-doubt",
            "/answers?dataset=names",
        ):
            page.goto(path)
            shoot(page, f"names{re.sub('[/?=.]', '-', path)}")


def test_what_is_empty_or_ended_says_so(browser: Browser, fresh: Here) -> None:
    """A service of its own, whose analyst has no share, and which finds no events any more."""
    parts, folder = fresh.parts, fresh.parts.settings.files[0]
    parts.accounts.add("eve", "analyst", PASSWORD)
    parts.ledger.close_budget("metered")
    parts.life.move("events", "paused")
    parts.life.move("visits", "retired")
    (folder / "events.csv").unlink()
    bare = folder.parent / "bare.db"
    sqlite3.connect(bare).close()
    parts.datasets.databases = Databases((("bare", f"sqlite:///{bare}"),))
    seen = {
        "eve": {"/": "The owner of this service decides who may ask what."},
        "bob": {"/": "Paused by its owner", "/datasets/metered": "nothing more is paid from it"},
        "olga": {
            "/answers?dataset=events": "Questions and their answers will be kept here.",
            "/owner/audit?before=1": "There are no entries here.",
            "/owner/datasets/visits": "retired",
            "/owner/new?source=bare": "No tables found",
            "/owner/new": "No events found",
        },
    }
    for who, pages in seen.items():
        with visiting(browser, fresh, signed_in(fresh, who)) as page:
            for path, words in pages.items():
                if words == "No events found":
                    parts.datasets.databases = Databases(())
                page.goto(path)
                page.get_by_text(words).first.wait_for()
                shoot(page, f"empty{re.sub('[/?=]', '-', path)}-{who}")
            if who == "bob":
                expect(page.locator("#go")).to_be_disabled()


def test_axe_finds_what_is_wrong(browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.set_content("<html lang=en><title>x</title><main><h1>x</h1><img src=x></main>")
        assert [one["id"] for one in AXE.run(page, options=RULES).response["violations"]] == [
            "image-alt"
        ]


def test_the_theme_can_be_switched_and_stays(browser: Browser, server: Server) -> None:
    with visiting(browser, server) as page:
        page.goto("/login")
        ground = "getComputedStyle(document.body).backgroundColor"
        before = page.evaluate(ground)
        page.get_by_role("button", name="Switch between light and dark").click()
        assert page.evaluate(ground) != before
        page.reload()
        assert page.evaluate(ground) != before


def test_an_account_has_keys_and_logs_out(
    browser: Browser, server: Server, sessions: dict[str, Any]
) -> None:
    with visiting(browser, server, sessions["bob"]) as page:
        page.goto("/account")
        page.get_by_label("Label").fill("nightly")
        page.get_by_role("button", name="Make a key").click()
        assert page.locator(".secret").inner_text().startswith("tsk_")
        page.get_by_text("Where you are logged in").wait_for()
        shoot(page, "account")
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        page.goto("/answers")
        page.wait_for_url("**/login?to=/answers")


def test_every_page_was_looked_at(request: pytest.FixtureRequest, sessions: dict[str, Any]) -> None:
    if {one for one in globals() if one.startswith("test_")} - {
        item.name for item in request.session.items
    }:
        pytest.skip("some of the tests that look at pages were not asked for")
    paths = {
        route.path: route.path_regex  # type: ignore[attr-defined]
        for router in ROUTERS
        for route in router.routes
        if "GET" in route.methods  # type: ignore[attr-defined]
    }
    no_pages = ("/api", "/metrics", "/login/openid")
    missed = [
        path
        for path, pattern in paths.items()
        if not path.startswith(no_pages) and "/download." not in path
        if not any(map(pattern.match, LOOKED_AT))
    ]
    assert missed == []
