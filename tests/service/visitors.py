"""A visitor in a browser, and a service's first run by the owner's hand, every page looked at."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from page_looks import DESKTOP, shoot
from playwright.sync_api import Browser, Page, expect
from serving import PASSWORD, PATIENCE, Here, Server

from topsecret.service.auth.dependencies import SESSION


@contextmanager
def visiting(
    browser: Browser, server: Server | Here, session: Any = None, *, allow: tuple[str, ...] = ()
) -> Iterator[Page]:
    """A visitor of their own, perhaps logged in, whose page must show no error in the console."""
    options: dict[str, Any] = {"viewport": DESKTOP, "base_url": server.address}
    with browser.new_context(storage_state=session, **options) as context:
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


def signed_in(service: Here, name: str) -> dict[str, Any]:
    """A session of somebody's, without their hand."""
    cookie = {"name": SESSION, "value": service.parts.accounts.begin(name)}
    return {"cookies": [cookie | {"url": service.address}], "origins": []}


def first_run(browser: Browser, server: Server) -> dict[str, Any]:
    """Set-up, datasets, two analysts with their shares; everybody's session, once logged in."""
    found: dict[str, str] = {}
    sessions: dict[str, Any] = {}
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
        page.goto("/")
        page.get_by_text("No datasets for you yet").wait_for()
        shoot(page, "home-empty")
        page.goto("/owner")
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
            page.get_by_role("textbox", name="Name").fill(name)
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
        sessions["olga"] = page.context.storage_state()
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
            if name == "bob":
                for path in ("answers", "saved", "account"):
                    page.goto(f"/{path}")
                    shoot(page, f"{path}-empty")
            sessions[name] = page.context.storage_state()
    return sessions
