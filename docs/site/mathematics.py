"""Formulas, which stand between dollar signs, as MathML: the site needs no script and no font.

They are TeX with the letters and signs of Unicode, so that the source is read as well:
``$e^{−ε} ≤ P(c)/P′(c)$``. A paragraph between two dollar signs each is displayed.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from latex2mathml.converter import convert

SIGNS = {
    "−": "-",
    "±": r"\pm ",
    "·": r"\cdot ",
    "×": r"\times ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "∈": r"\in ",
    "⊆": r"\subseteq ",
    "∪": r"\cup ",
    "∩": r"\cap ",
    "∖": r"\backslash ",  # few fonts have the sign of TeX's \setminus
    "∝": r"\propto ",
    "∼": r"\sim ",
    "↦": r"\mapsto ",
    "→": r"\to ",
    "∂": r"\partial ",
    "∫": r"\int ",
    "Σ": r"\sum ",
    "Π": r"\prod ",
    "‖": r"\| ",
    "⌊": r"\lfloor ",
    "⌋": r"\rfloor ",
    "⌈": r"\lceil ",
    "⌉": r"\rceil ",
    "…": r"\ldots ",
    "⋯": r"\cdots ",
    "∗": r"\ast ",
    "⊖": r"\ominus ",
    "⋈": r"\bowtie ",
    "⊥": r"\bot ",
    "′": "'",
    "″": "''",
}
ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar"}
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀᵒ", "0123456789+-To")
LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉₊₋₍₎ₖₘₙᵢⱼₗ", "0123456789+-()kmnijl")
CODE = r"(?P<code>^```.*?^```$|`[^`\n]+`)"
DISPLAYED = r"\$\$(?P<displayed>[^$]+)\$\$"
IN_TEXT = (
    r"(?<![\\$\w])(?P<before>\(?)\$(?P<in_text>[^$\s](?:[^$\n]*[^$\s])?)\$(?!\w)(?P<after>[).,;:]*)"
)
FORMULA = re.compile(f"{CODE}|{DISPLAYED}|{IN_TEXT}", re.M | re.S)
PLACE = re.compile("(?P<paragraph><p>)?\ue000(?P<number>\\d+)\ue001(?(paragraph)</p>)")
BREAKS = re.compile(r"(?=\\(?:le|ge|in|ne|propto|sim|subseteq|cdot) |(?<!\^\{)(?<!_\{)[=<>+-])")
LETTER = re.compile(r"\s*(\w|\\[a-z]+)\s*")
_formulas: list[str] = []


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Take the formulas out: Markdown would read their signs as its own."""
    return FORMULA.sub(placed, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Put them back, as MathML; one that is displayed is no paragraph."""
    return PLACE.sub(filled, html)


def placed(found: re.Match[str]) -> str:
    """A place for a formula; code as it is."""
    if found["code"]:
        return found[0]
    if found["displayed"]:
        _formulas.append(displayed(found["displayed"]))
    else:
        _formulas.append(in_text(found["in_text"], found["after"], found["before"]))
    return f"\ue000{len(_formulas) - 1}\ue001"


def filled(place: re.Match[str]) -> str:
    """The formula that belongs to a place."""
    formula = _formulas[int(place["number"])]
    paragraph = place["paragraph"] and not formula.startswith("<div")
    return f"<p>{formula}</p>" if paragraph else formula


def displayed(formula: str) -> str:
    """A formula of its own, which scrolls where it is too wide for the page."""
    return f'<div class="formula">{mathml(latex(formula.strip()), "block")}</div>'


def in_text(formula: str, after: str = "", before: str = "") -> str:
    """A formula in a sentence; browsers break no formula, so a long one is several.

    The signs before and after it stay on its line.

    >>> in_text("f(x + y) ≤ g(x + z) + h").count("<math")
    3
    """
    pieces = broken(latex(formula)) if len(formula) > 16 else [latex(formula)]
    first, *others = [mathml(piece) for piece in pieces]
    others = [other.replace("<mo>", '<mo form="infix">', 1) for other in others]
    pieces = [before + first, *others]
    pieces[-1] += after
    if before or after:
        pieces = [f'<span class="unbroken">{piece}</span>' for piece in pieces]
    return "<wbr>".join(pieces)


def mathml(formula: str, display: str = "inline") -> str:
    r"""TeX as MathML, with a prime beside its letter: raised once more it is a speck.

    >>> "<msub><mrow>" in mathml("W'_i")
    True
    >>> "<mo>&#x0223C;</mo>" in mathml(r"S \sim P"), "<mi>&#x022A5;" in mathml(r"\bot")
    (True, True)
    >>> "<mi>ln</mi><mspace width='0.17em'/><mi>V</mi>" in mathml(r"\ln V")
    True
    """
    made = convert(formula, display=display).replace("<mi>&#x0005C;</mi>", "<mo>&#x0005C;</mo>")
    made = made.replace("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>")  # a relation, with its space
    made = made.replace("<mo>&#x022A5;</mo>", "<mi>&#x022A5;</mi>")  # a symbol, without
    made = made.replace('mathvariant="bold"', 'style="font-weight: bold"')  # for Chromium
    names = "(?<!<msup>)(?<!<msub>)(<mi>(?:ln|cosh|tanh)</mi>)(?=<m(?:i|n|sup|sub|sqrt|frac)>)"
    made = re.sub(names, r"\1<mspace width='0.17em'/>", made)
    signs = r"(<mo[^>]*>(?:&#x00028;|\[|=|&#x0003D;|&#x0002C;|&#x02264;)</mo>)<mo>&#x02212;</mo>"
    made = re.sub(signs, r'\1<mo form="prefix">&#x02212;</mo>', made)  # no space after a sign
    letter, prime = "(<mi>[^<&]</mi>)", "<mi>(&#x0203[23];)</mi>"
    beside = r"<mrow>\1<mo lspace='0' rspace='0'>\2</mo></mrow>"
    made = re.sub(f"<msup>{letter}{prime}</msup>", beside, made)
    index = "(<m[ion]>[^<]*</m[ion]>)"
    lowered = r"<msub><mrow>\1<mo lspace='0' rspace='0'>\3</mo></mrow>\2</msub>"
    return re.sub(f"<msubsup>{letter}{index}{prime}</msubsup>", lowered, made)


def latex(formula: str) -> str:
    r"""The signs of Unicode as TeX.

    >>> latex("k̄ ≤ h₍ₘ₎² + ŝ")
    '\\bar{k} \\le  h_{(m)}^{2} + \\hat{s}'
    """
    formula = unicodedata.normalize("NFD", formula.replace("≠", r"\ne "))
    for accent, name in ACCENTS.items():
        formula = re.sub(rf"(\w){accent}", rf"\\{name}{{\1}}", formula)
    formula = re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵀᵒ]+", lambda run: f"^{{{run[0].translate(RAISED)}}}", formula)
    formula = re.sub("[₀-₎ₖₘₙᵢⱼₗ]+", lambda run: f"_{{{run[0].translate(LOWERED)}}}", formula)
    return "".join(SIGNS.get(sign, sign) for sign in formula)


def broken(formula: str) -> list[str]:
    """The formula, cut before relations and sums where no bracket is open.

    No line begins with the sign of a product of which one letter stands on the line before.

    >>> broken("f(a + b) = -c")
    ['f(a + b) ', '= -c']
    >>> broken(r"\\delta \\cdot (1 + a) \\cdot b")
    ['\\\\delta \\\\cdot (1 + a) ', '\\\\cdot b']
    """
    pieces = [""]
    for part in BREAKS.split(formula):
        before = pieces[-1]
        opened = len(re.findall(r"[({[]|\\lfloor|\\lceil", before))
        closed = len(re.findall(r"[)}\]]|\\rfloor|\\rceil", before))
        operand = re.search(r"[^=<>+\-\s]\s*$", re.sub(r"\\(?!\})\w+ *", "", before))
        lone = part.startswith(r"\cdot") and LETTER.fullmatch(before)
        if opened == closed and operand and not lone:
            pieces.append(part)
        else:
            pieces[-1] += part
    return pieces
