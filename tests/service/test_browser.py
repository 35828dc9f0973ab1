"""The pages in a real browser: Debian's Chromium, driven by Playwright.

Every page is checked for script errors, refused resources and axe's rules, on a desktop and a
phone, in light and in dark. ``TOPSECRET_SCREENSHOTS=1`` keeps a picture of each in
``build/screenshots``, to look at.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from every_state import ITEMS, RIGHT_TO_LEFT, in_every_state
from page_looks import AXE, BARS, DESKTOP, PHONE, PICTURES, RULES, SCREENSHOTS, WIDER, shoot
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright
from serving import PASSWORD, PATIENCE, PLACES, SHOP, Server, write_events, write_table

from topsecret.accounting import zcdp
from topsecret.accounting.privacy_unit import PrivacyUnit
from topsecret.ledger import Ledger, Price, Request

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
    running = Server(folder, "--source", f"shop={address}")
    yield running
    assert running.stop() == 0


@contextmanager
def visiting(browser: Browser, server: Server, *, allow: tuple[str, ...] = ()) -> Iterator[Page]:
    """A visitor of their own, whose page must show no error in the console."""
    with browser.new_context(viewport=DESKTOP, base_url=server.address) as context:
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE)
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda message: (
                complaints.append(message.text) if message.type in ("error", "warning") else None
            ),
        )
        yield page
        assert [one for one in complaints if not any(word in one for word in allow)] == []


def log_in(page: Page, name: str, password: str) -> None:
    page.goto("/login")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.keyboard.press("Enter")


@pytest.fixture(scope="module")
def passwords(browser: Browser, server: Server) -> dict[str, str]:
    """The first run, by the owner's hand: set-up, a data set, two analysts, their shares."""
    found = {"olga": PASSWORD}
    # Chromium reports the 400 of the form that is filled in wrongly.
    with visiting(browser, server, allow=("400",)) as page:
        page.goto("/")
        page.wait_for_url("**/setup")
        assert page.get_by_text("has no owner yet").is_visible()
        shoot(page, "setup-without-link")
        page.goto(server.set_up_link)
        shoot(page, "setup")
        page.get_by_label("Name").fill("olga")
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_label("Password again").fill(PASSWORD)
        page.get_by_role("button", name="Make the owner").click()
        page.wait_for_url("**/owner")
        shoot(page, "owner-empty")
        page.get_by_role("link", name="Register the first one").click()
        shoot(page, "register-file")
        page.get_by_role("link", name="events.csv").click()
        page.get_by_label("Title").fill("Events in the city")
        page.locator("select[name=person_column]").select_option("user")
        page.get_by_role("checkbox", name="place").check()
        page.get_by_role("checkbox", name="colour").check()
        page.get_by_role("checkbox", name="Analysts may ask in SQL").check()
        shoot(page, "register")
        page.get_by_label("Most items").fill("many")
        page.get_by_role("button", name="Register and open").click()
        assert "whole number" in page.get_by_role("alert").inner_text()
        shoot(page, "register-wrong")
        assert page.get_by_label("Title").input_value() == "Events in the city"
        assert page.get_by_role("checkbox", name="colour").is_checked()
        assert page.get_by_role("checkbox", name="Analysts may ask in SQL").is_checked()
        page.get_by_label("Most items").fill("")
        page.get_by_role("button", name="Register and open").click()
        page.wait_for_url("**/owner/datasets/events")
        page.goto("/owner/new")
        page.get_by_role("link", name="shop").click()
        shoot(page, "register-table")
        page.get_by_role("link", name="visits").click()
        page.get_by_label("Title").fill("Visits, from the shop’s database")
        page.locator("select[name=person_column]").select_option("who")
        page.get_by_role("checkbox", name="place").check()
        page.get_by_role("button", name="Register and open").click()
        page.wait_for_url("**/owner/datasets/visits")
        assert page.get_by_text("visits of shop").is_visible()
        page.goto("/owner/analysts")
        shoot(page, "analysts-empty")
        for name in ("ann", "bob"):
            page.goto("/owner/analysts")
            page.get_by_label("Name").fill(name)
            page.get_by_role("button", name="Make the account").click()
            found[name] = page.locator(".secret").inner_text()
        shoot(page, "analysts")
        for name, epsilon in (("ann", "3"), ("bob", "0.4")):
            page.goto("/owner/datasets/events")
            page.locator("select[name=analyst]").select_option(name)
            page.get_by_label("Share").fill(epsilon)
            page.get_by_role("button", name="Give this share").click()
            page.get_by_role("listitem").filter(has_text=name).wait_for()
        page.locator("select[name=name]").select_option("bob")
        page.get_by_role("button", name="Give this role").click()
        page.get_by_role("button", name="Take the role of bob away").wait_for()
        shoot(page, "owner-dataset")
        page.get_by_role("button", name="Take the role of bob away").click()
        expect(page.get_by_role("button", name="Take the role of bob away")).to_have_count(0)
        page.goto("/owner/datasets/visits/edit")
        page.get_by_text("Read the version from a public table").click()
        shoot(page, "owner-edit")
        page.goto("/owner/datasets/events")
        page.get_by_role("link", name="Edit").click()
        page.get_by_label("Title for people").fill("Events in the city")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("button", name="Pause").click()
        page.get_by_text("Paused: nothing can be asked").wait_for()
        shoot(page, "owner-paused")
        page.get_by_role("button", name="Let it go on").click()
        page.get_by_role("button", name="Pause").wait_for()
        page.goto("/owner")
        shoot(page, "owner")
        page.goto("/owner/in-doubt")
        shoot(page, "owner-in-doubt")
        page.goto("/owner/audit")
        page.get_by_text("give role").first.wait_for()
        shoot(page, "audit")
    for name in ("ann", "bob"):
        with visiting(browser, server, allow=("400",)) as page:
            log_in(page, name, found[name])
            page.wait_for_url("**/account/password")
            page.get_by_label("Password that you were given").fill(found[name])
            page.get_by_label("New password").fill(found[name] if name == "ann" else PASSWORD)
            if name == "ann":
                page.get_by_role("button", name="Use this password").click()
                assert "is the old one" in page.get_by_role("alert").inner_text()
                shoot(page, "first-password")
                page.get_by_label("Password that you were given").fill(found[name])
                page.get_by_label("New password").fill(PASSWORD)
            page.get_by_role("button", name="Use this password").click()
            page.wait_for_url(f"{server.address}/")
        found[name] = PASSWORD
    return found


def test_the_set_up_link_works_once(
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    with visiting(browser, server) as page:
        page.goto(server.set_up_link)
        page.wait_for_url("**/login")


def test_a_wrong_password_is_refused_kindly(
    browser: Browser, server: Server, passwords: dict[str, str]
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
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    with visiting(browser, server) as page:
        page.goto("/login")
        shoot(page, "login")
        log_in(page, "ann", passwords["ann"])
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
        page.get_by_label("At most so often").fill("1")
        shoot(page, "schedule")
        page.get_by_role("button", name="Pay and schedule").click()
        # What is due is asked at the next look; its data are as they were, and its answer is free.
        deadline = time.monotonic() + PATIENCE
        while not page.get_by_role("link", name="The latest answer").is_visible():
            assert time.monotonic() < deadline
            page.reload()
        shoot(page, "saved")
        page.goto("/docs")
        shoot(page, "docs")


def test_the_data_may_decide_how_many(
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    with visiting(browser, server) as page:
        log_in(page, "ann", passwords["ann"])
        page.wait_for_url(f"{server.address}/")
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
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    query = (
        "SELECT colour, COUNT(DISTINCT user) AS n FROM t GROUP BY colour ORDER BY n DESC LIMIT 1"
    )
    # Chromium reports the 400 of the preview.
    with visiting(browser, server, allow=("400",)) as page:
        log_in(page, "ann", passwords["ann"])
        page.wait_for_url(f"{server.address}/")
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


def test_a_budget_that_is_used_up_says_so(
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    with visiting(browser, server) as page:
        log_in(page, "bob", passwords["bob"])
        page.wait_for_url(f"{server.address}/")
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
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    ledger = Ledger(server.folder / "service.db")
    question = {"asked by": "a program that was cut short"}
    unit = PrivacyUnit(person="user")
    ledger.reserve(Request("events", Price(zcdp(0.001)), question, unit, analyst="ann"))
    ledger.close()
    with visiting(browser, server) as page:
        log_in(page, "olga", passwords["olga"])
        page.wait_for_url(f"{server.address}/")
        page.goto("/owner")
        page.get_by_role("link", name="1 reservation without an end").click()
        shoot(page, "owner-in-doubt-one")
        page.locator("summary").click()
        shoot(page, "owner-in-doubt-sure")
        page.get_by_role("button", name="write it off").click()
        page.get_by_text("All is settled").wait_for()


def test_another_analysts_answer_is_not_shown(
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    with visiting(browser, server) as page:
        log_in(page, "ann", passwords["ann"])
        page.wait_for_url(f"{server.address}/")
        page.goto("/datasets/events")
        page.get_by_label("How many").fill("3")
        page.get_by_role("button", name="Ask").click()
        page.wait_for_url("**/answers/*")
        address = page.url
    with visiting(browser, server, allow=("404",)) as page:
        log_in(page, "bob", passwords["bob"])
        page.wait_for_url(f"{server.address}/")
        page.goto(address)
        assert page.get_by_role("heading", name="Nothing here").is_visible()
        shoot(page, "problem")


def test_every_state_and_the_longest_names_fit(
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    answers = in_every_state(server)
    with visiting(browser, server) as page:
        log_in(page, "ann", passwords["ann"])
        page.wait_for_url(f"{server.address}/")
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
            shoot(page, f"state-{name}")
            if name == "hundred":
                page.set_viewport_size(PHONE)  # type: ignore[arg-type]
                page.get_by_text("As a table").click()
                assert not page.evaluate(WIDER)
                page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
        page.goto("/answers")
        shoot(page, "names-history")
    with visiting(browser, server) as page:
        log_in(page, "olga", passwords["olga"])
        page.wait_for_url(f"{server.address}/")
        page.goto(f"/answers/{answers['failed']}")
        page.get_by_text("Cause, for owners alone").wait_for()
        shoot(page, "names-cause")
        for path in ("/owner", "/owner/datasets/names", "/owner/datasets/names/edit"):
            page.goto(path)
            shoot(page, f"names{path.replace('/', '-')}")


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
    browser: Browser, server: Server, passwords: dict[str, str]
) -> None:
    with visiting(browser, server) as page:
        log_in(page, "bob", passwords["bob"])
        page.wait_for_url(f"{server.address}/")
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
