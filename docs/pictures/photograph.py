"""Takes the pictures of the README from the real thing: ``make pictures``.

``answer.svg`` is what the command prints about the demo's made-up city, ``service.png`` the page
that answers in a browser (Chromium).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from subprocess import DEVNULL, PIPE
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
PROGRAM = [sys.executable, "-m", "topsecret"]
QUESTION = ["top", "demo/checkins.csv", "--item", "place", "--person", "user"]
SHOWN = ["-k", "10", "--epsilon", "1"]
LEFT_OUT = ("Named when", "Mechanism", "Made")
"""Lines of the receipt that the picture has no room for."""
ACCENT = ' fill="#80cbc4"'
LINE, MARGIN, LETTER = 19, 18, 8.0


def answered(folder: Path) -> list[str]:
    """The question and what the command prints, without the receipt's details."""
    subprocess.run([*PROGRAM, "demo"], cwd=folder, check=True, capture_output=True)
    words = [*PROGRAM, *QUESTION, *SHOWN]
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
    kept, shown = [], True
    for line in done.stdout.splitlines():
        if re.match(r"  [A-Z]", line):
            shown = not line.strip().startswith(LEFT_OUT)
        kept += [line] if shown else []
    return [f"$ topsecret {' '.join([*QUESTION, *SHOWN])}", *kept, "  …"]


def terminal(lines: list[str]) -> str:
    """Lines of text as a picture of a terminal, readable on light and on dark pages."""
    width = round(max(map(len, lines)) * LETTER + 2 * MARGIN)
    height = len(lines) * LINE + 2 * MARGIN
    texts = "".join(
        f'<text x="{MARGIN}" y="{MARGIN + 14 + place * LINE}" xml:space="preserve"'
        f"{ACCENT if place == 0 or line == 'Receipt' else ''}>{escape(line)}</text>\n"
        for place, line in enumerate(lines)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" '
        'font-size="13" fill="#eceff1">\n<title>A question on the command line, its answer and '
        'receipt</title>\n<rect width="100%" height="100%" rx="8" fill="#263238"/>\n'
        f"{texts}</svg>\n"
    )


def photograph(folder: Path, target: Path) -> None:
    """Start the demo's service, ask as the analyst, and keep the page with the answer."""
    from playwright.sync_api import sync_playwright

    words = [*PROGRAM, "serve", "--demo", "--port", "0"]
    with (
        subprocess.Popen(words, cwd=folder, text=True, stdout=PIPE, stderr=DEVNULL) as server,
        sync_playwright() as playwright,
    ):
        try:
            assert server.stdout is not None
            said = ""
            while "topsecret serves" not in said:
                said += server.stdout.readline()
            password = re.search(r"ann +with (\S+)", said)
            address = re.search(r"serves (\S+)", said)
            assert password is not None
            assert address is not None
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 900, "height": 750}, base_url=address[1])
            page.set_default_timeout(120_000)
            page.goto("/login")
            page.get_by_label("Name").fill("ann")
            page.get_by_label("Password").fill(password[1])
            page.keyboard.press("Enter")
            page.get_by_role("link", name="Check-ins in the city").click()
            page.get_by_label("How many").fill("10")
            page.get_by_label("With noisy counts").check()
            page.get_by_role("button", name="Ask").click()
            page.get_by_role("link", name="Download CSV").wait_for()
            page.screenshot(path=target, animations="disabled")
            browser.close()
        finally:
            server.terminate()


def main() -> None:
    """Both pictures, into this folder."""
    with tempfile.TemporaryDirectory() as folder:
        (HERE / "answer.svg").write_text(terminal(answered(Path(folder))), encoding="utf-8")
        photograph(Path(folder), HERE / "service.png")


if __name__ == "__main__":
    main()
