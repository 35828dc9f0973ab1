"""Draws the pictures of docs/mechanisms.md: ``python docs/pictures/draw.py``.

Every picture shows the same counts. Noise is drawn by hand: a picture explains, it proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
COUNTS = (88, 76, 70, 52, 44, 20, 14, 9, 6, 4)
WIDTH, HEIGHT, FLOOR = 560, 240, 200
INK, GREY, BAR, GREEN = "#263238", "#546e7a", "#cfd8dc", "#80cbc4"
NAMED, LINE = "#00796b", "#d84315"


class Picture:
    """Bars of counts with what a mechanism adds to them."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.parts: list[str] = []

    def bars(self, named: Sequence[int] = (), looked: int = 10) -> Picture:
        """The counts, best first; those named in colour, those not looked at empty."""
        for place, count in enumerate(COUNTS):
            colour = GREEN if place in named else BAR
            fill = f'"{colour}"' if place < looked else '"none" stroke-dasharray="3 2"'
            self.parts.append(
                f'<rect x="{left(place)}" y="{top(count)}" width="30" height="{FLOOR - top(count)}"'
                f' stroke="{GREY}" fill={fill}/>'
            )
        return self

    def noisy(
        self,
        noise: Sequence[int],
        picked: Sequence[int] = (),
        numbered: bool = True,
        struck: Sequence[int] = (),
    ) -> Picture:
        """Noisy counts as dots on stalks; the picked ones filled, with their turn."""
        for place, extra in enumerate(noise):
            x, high = left(place) + 15, top(COUNTS[place] + extra)
            self.parts.append(
                f'<path d="M{x} {top(COUNTS[place])}V{high}" stroke="{GREY}" stroke-width="1.5"/>'
            )
            colour = GREY if place in struck else NAMED
            fill = colour if place in picked else "#ffffff"
            self.parts.append(f'<circle cx="{x}" cy="{high}" r="5" fill="{fill}" stroke="{INK}"/>')
            if numbered and place in picked:
                self.text(x + 9, high + 4, str(picked.index(place) + 1), colour)
        return self

    def level(
        self, count: float, label: str, start: int = 0, end: int = 10, raised: int = 0
    ) -> Picture:
        """A dashed line at a height, with its name at the right, raised above what bars are there.

        A stalk leads from a raised name to its line.
        """
        y = top(count)
        self.parts.append(
            f'<path d="M{left(start) - 6} {y}H{left(end) - 4}" stroke="{LINE}" stroke-width="1.5"'
            ' stroke-dasharray="5 3"/>'
        )
        if raised:
            self.parts.append(
                f'<path d="M{left(end) - 9} {y}V{y - raised}" stroke="{LINE}" stroke-width="1.5"/>'
            )
        return self.text(left(end) - 4, y - raised - 5, label, LINE, "end")

    def cross(self, place: int) -> Picture:
        """An item that is struck out again."""
        x, y = left(place) + 15, top(COUNTS[place]) + 14
        self.parts.append(
            f'<path d="M{x - 8} {y - 8}l16 16m0 -16l-16 16" stroke="{LINE}" stroke-width="3"/>'
        )
        return self

    def gap(self, place: int, label: str, colour: str = LINE) -> Picture:
        """The drop after the first ``place`` items."""
        x, high, low = left(place) - 7, top(COUNTS[place - 1]), top(COUNTS[place])
        self.parts.append(
            f'<path d="M{x - 4} {high}h8m-4 0V{low}m-4 0h8" stroke="{colour}" stroke-width="1.5"'
            ' fill="none"/>'
        )
        return self.text(x + 8, min((high + low) // 2 + 4, low - 5), label, colour)

    def span(self, place: int, count: float) -> Picture:
        """From the top of a bar down to a height."""
        x = left(place) + 38
        self.parts.append(
            f'<path d="M{x - 4} {top(COUNTS[place])}h8m-4 0V{top(count)}m-4 0h8" stroke="{LINE}"'
            ' stroke-width="1.5" fill="none"/>'
        )
        return self

    def around(self, first: int, last: int, label: str) -> Picture:
        """A frame round several bars, which have no order among them."""
        x, y = left(first) - 5, top(COUNTS[first]) - 8
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{left(last) + 35 - x}" height="{FLOOR + 4 - y}" rx="6"'
            f' fill="none" stroke="{NAMED}" stroke-width="1.5"/>'
        )
        return self.text(x, y - 5, label, NAMED)

    def text(
        self, x: float, y: float, words: str, colour: str = INK, anchor: str = "start"
    ) -> Picture:
        """A few words."""
        self.parts.append(
            f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}" paint-order="stroke" '
            f'stroke="white" stroke-width="3">{escape(words)}</text>'  # readable on a bar
        )
        return self

    def svg(self) -> str:
        """The whole file."""
        body = "\n".join(self.parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
            ' font-family="sans-serif" font-size="13">\n'
            f"<title>{escape(self.words)}</title>\n"
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>\n{body}\n'
            f'<path d="M20 {FLOOR}H{WIDTH - 20}" stroke="{INK}"/>\n'
            f'<text x="{WIDTH / 2}" y="{FLOOR + 26}" fill="{INK}" text-anchor="middle">'
            f"{escape(self.words)}</text>\n</svg>\n"
        )


def left(place: float) -> float:
    """Where the bar of a place begins."""
    return 30 + 52 * place


def top(count: float) -> float:
    """The height of a count on the page."""
    return FLOOR - 1.6 * count


BOTH_WAYS = (-6, 12, 4, -9, 11, 5, -8, 12, -3, 8)
UPWARDS = (1, 14, 5, 2, 19, 7, 1, 10, 4, 15)

PICTURES = {
    "gumbel": Picture("Gumbel noise on every item of the menu; the k largest, in order")
    .bars(named=(0, 1, 2))
    .noisy(BOTH_WAYS, picked=(1, 0, 2)),
    "permute-and-flip": Picture("noise upwards only, drawn afresh in each round")
    .bars(named=(1,))
    .noisy(UPWARDS, picked=(1,))
    .text(250, 50, "the winner leaves, the next round begins", GREY),
    "oneshot-exponential": Picture("noise upwards only, drawn once; the k largest, in order")
    .bars(named=(0, 1, 2))
    .noisy((*UPWARDS[:4], 9, *UPWARDS[5:]), picked=(1, 0, 2)),
    "oneshot-laplace": Picture("noise both ways, drawn once; the k largest, as a set")
    .bars(named=(0, 1, 2))
    .noisy((-6, 8, 4, -9, 6, 5, -8, 12, -3, 8), picked=(0, 1, 2), numbered=False)
    .around(0, 2, "no order is published"),
    "canonical-set": Picture("all sets of a private size; the wider the step, the likelier")
    .bars(named=(0, 1, 2, 3, 4))
    .gap(5, "how far the set leads")
    .around(0, 4, "drawn at once, no order is published"),
    "oneshot-private-length": Picture("upward noise, less of it for a shorter list")
    .bars(named=(0, 1, 2))
    .noisy((1, 9, 3, 1, 8, 4, 1, 6, 2, 9), picked=(0, 1, 2))
    .text(250, 50, "a private step chose 3 of 5", GREY),
    "pruned": Picture("picks beyond k, the late ones more costly; then the weakest are struck out")
    .bars(named=(0, 1, 2))
    .noisy((-6, 12, 4, -9, 11), picked=(1, 0, 2, 4), struck=(4,))
    .cross(4),
    "limited-domain": Picture("k̄ leading items may be named, until ⊥ has its turn")
    .bars(named=(0, 1, 2), looked=7)
    .noisy((-3, 10, 4, -4, 5, 6, -5), picked=(1, 0, 2))
    .level(60, "⊥: the item of rank k̄ + 1, plus a safe distance, plus noise"),
    "limited-domain-laplace": Picture("as before; with few items per person the line is lower")
    .bars(named=(0, 1, 2, 3), looked=7)
    .noisy((-3, 10, 4, 2, -7, 6, -5), picked=(1, 0, 2, 3))
    .level(44, "⊥ with at most Δ items per person"),
    "optimal-threshold": Picture("one pick is spent on the cheapest place for the line")
    .bars(named=(0, 1), looked=8)
    .noisy((-3, 10, -9, -4, 5, 6, -5, 3), picked=(1, 0), numbered=False)
    .level(84, "if k̄ = 4", 4, 6)
    .level(72, "if k̄ = 6", 6, 8)
    .level(66, "chosen: k̄ = 8", 8, 10),
    "fixed-threshold": Picture("each of the top k alone: does it pass the line? A set")
    .bars(named=(0, 1, 2), looked=5)
    .noisy((-5, 9, 6, -6, 4), picked=(0, 1, 2), numbered=False)
    .level(62, "the item of rank k + 1, plus a safe distance"),
    "top-stable": Picture("from k̄ down: the first gap that is wide enough ends the set")
    .bars(named=range(5), looked=8)
    .gap(7, "no", GREY)
    .gap(6, "no", GREY)
    .gap(5, "yes: stable")
    .around(0, 4, "the set of the top 5"),
    "tested": Picture("hidden picks, hidden prunes, and one test of nested lists")
    .bars(named=(0, 1, 2, 3), looked=8)
    .cross(4)
    .level(COUNTS[8], "rank k̄ + 1")
    .span(3, COUNTS[8])
    .text(265, 60, "Is the weakest survivor far enough above", LINE)
    .text(265, 78, "the rest? Then the list, else a shorter part.", LINE),
    "weighted": Picture("who has many items counts less for each; all above a line are named")
    .bars(named=(0, 1, 2, 3))
    .noisy((-5, 9, 4, 2, -7, 6, -5, 3, -4, 5), picked=(0, 1, 2, 3), numbered=False)
    .level(52, "a fixed line, above what one person brings"),
    "tested-or-weighted": Picture(
        "a small part of the budget asks which of two rules suits the data"
    )
    .bars(named=(0, 1, 2, 3))
    .noisy((-5, 9, 4, 2), picked=(0, 1, 2, 3), numbered=False)
    .level(52, "weights: above a fixed line", 0, 10)
    .level(COUNTS[8], "picks: above rank k̄ + 1, by one test", raised=30)
    .text(285, 40, "few items each: weights; many: picks", NAMED),
    "stable": Picture("the largest noisy gap says how many; a test says whether")
    .bars(named=range(5))
    .gap(3, "", GREY)
    .gap(5, "largest gap, tested")
    .around(0, 4, "as many as stand out"),
    "stable-fixed-k": Picture("a gap near k sets most items apart; picks fill up the set")
    .bars(named=(0, 1, 2, 4))
    .gap(3, "")
    .around(0, 2, "set apart by the gap")
    .text(left(4) - 8, top(COUNTS[4]) - 10, "picked", NAMED),
    "counts": Picture("fresh whole-number noise on the counts of items already named")
    .bars(named=(0, 1, 2), looked=3)
    .noisy((4, -5, 7), picked=(0, 1, 2), numbered=False)
    .text(250, 60, "92, 71, 77", NAMED)
    .text(250, 80, "never the noise that chose them", GREY),
}


def main() -> None:
    """Write every picture beside this file."""
    for name, picture in PICTURES.items():
        (HERE / f"{name}.svg").write_text(picture.svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
