"""How a page looks: on a desktop and a phone, in light and in dark, by axe's rules.

On a phone all that is folded is unfolded: axe sees nothing of what is not shown.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

PICTURES = bool(os.environ.get("TOPSECRET_SCREENSHOTS"))
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
ONE_LINE = """cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size === 1;
}"""
WIDER = "document.documentElement.scrollWidth > innerWidth"
CUT_OFF = """[...document.querySelectorAll("body *:not(.unseen)")]
  .filter((one) => getComputedStyle(one).overflowX === "hidden")
  .filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => one.outerHTML.slice(0, 80))"""
"""What is wider than the frame that hides the rest of it; the page itself is no wider then."""
SMALL = """[...document.querySelectorAll(
    "nav a, button, .button, .rows a, summary, select, label.check, input:not([type=checkbox])")]
  .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 43.9)
  .map((one) => one.outerHTML.slice(0, 80))"""
FOLDED = "() => document.querySelectorAll('details:not([open])')"
UNFOLD = "all => { for (const one of all) one.open = true; }"
FOLD = "all => { for (const one of all) one.open = false; }"
AXE = Axe()
INJECTED = Axe(axe_script="0")
"""For a page that has axe's script already: half a megabyte is read once for each page."""
RULES = {"resultTypes": ["violations"]}
CONTRAST = RULES | {"runOnly": ["color-contrast"]}
BARS = """async bytes => {
  if (String.fromCharCode(...bytes.slice(1, 4)) !== "PNG") return -1;
  const picture = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
  const pen = new OffscreenCanvas(picture.width, picture.height).getContext("2d");
  pen.drawImage(picture, 0, 0);
  const all = pen.getImageData(0, 0, picture.width, picture.height).data;
  const colour = (x, y) => all.subarray(4 * (y * picture.width + x)).subarray(0, 4).join();
  let bars = 0;
  for (let y = 84; y < picture.height - 50; y += 44) bars += colour(382, y) !== colour(2, 2);
  return bars;
}"""
"""How many lines of a downloaded PNG begin with a bar."""


LOOKED_AT: set[str] = set()
"""The paths of the pages that were looked at."""


def shoot(page: Page, name: str) -> None:
    """The page on a desktop and a phone, in light and in dark; it may not scroll sideways."""
    LOOKED_AT.add(urlsplit(page.url).path)
    page.evaluate(AXE.axe_script)
    folded = page.evaluate_handle(FOLDED)
    for size, viewport in (("desktop", DESKTOP), ("phone", PHONE)):
        page.set_viewport_size(viewport)  # type: ignore[arg-type]
        if size == "phone":
            folded.evaluate(UNFOLD)
        # Colours move nothing: in the second ones axe looks at contrasts alone.
        usual, other = ("light", "dark") if size == "desktop" else ("dark", "light")
        for scheme, rules in ((usual, RULES), (other, CONTRAST)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            if PICTURES:
                path = SCREENSHOTS / f"{name}-{size}-{scheme}.png"
                page.screenshot(path=path, full_page=True, animations="disabled")
            found = INJECTED.run(page, options=rules)
            assert found.violations_count == 0, f"{name} {size} {scheme}: {found.generate_report()}"
        assert not page.evaluate(WIDER), f"{name} is wider than a {size}"
        assert page.evaluate(CUT_OFF) == [], f"{name} hides something on a {size}"
    assert page.evaluate(SMALL) == [], f"{name} has targets that a finger misses"
    page.set_viewport_size({"width": 320, "height": 640})
    assert not page.evaluate(WIDER), f"{name} is wider than a small phone"
    assert page.evaluate(CUT_OFF) == [], f"{name} hides something on a small phone"
    folded.evaluate(FOLD)
    page.set_viewport_size(DESKTOP)  # type: ignore[arg-type]
    page.emulate_media(color_scheme="light")
