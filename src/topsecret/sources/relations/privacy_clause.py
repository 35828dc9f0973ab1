"""BigQuery's WITH DIFFERENTIAL_PRIVACY OPTIONS(…), cut out of a query's text by its tokens.

>>> cut("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) a FROM t", "bigquery")
('SELECT   a FROM t', {'epsilon': '1'})
"""

from __future__ import annotations

from typing import Any

from sqlglot import Dialect, TokenType
from sqlglot.errors import SqlglotError

from topsecret.sources.relations.refusal import QueryRefused
from topsecret.sources.sql import loaded_dialects  # noqa: F401

NAME = "DIFFERENTIAL_PRIVACY"
OPTIONS = {
    "epsilon",
    "delta",
    "privacy_unit_column",
    "max_groups_contributed",
    "max_rows_per_item",
    "max_sum_per_item",
    "unit",
}


def cut(text: str, dialect: str) -> tuple[str, dict[str, str]]:
    """The query without the clause, and the clause's options."""
    if NAME not in text.upper():
        return text, {}
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except (SqlglotError, RecursionError):
        raise QueryRefused(
            "syntax", f"this is not {dialect} SQL; check quotes and brackets"
        ) from None
    places = [p for p, token in enumerate(tokens) if token.text.upper() == NAME]
    places = [p for p in places if p > 0 and tokens[p - 1].token_type == TokenType.WITH]
    if not places:
        return text, {}
    if len(places) > 1:
        raise QueryRefused("options-twice", f"WITH {NAME} stands twice; once is enough")
    (place,) = places
    depth = sum(
        (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        for token in tokens[:place]
    )
    if depth:
        raise QueryRefused(
            "options-inner", f"WITH {NAME} in a sub-query; it belongs to the outermost SELECT"
        )
    end, options = _options(tokens, place + 1)
    start = tokens[place - 1].start
    return f"{text[:start]} {text[end:]}", options


def _options(tokens: list[Any], place: int) -> tuple[int, dict[str, str]]:
    wrong = QueryRefused(
        "options", f"WITH {NAME} needs OPTIONS(name = value, …) of {', '.join(sorted(OPTIONS))}"
    )
    texts = [token.text for token in tokens]
    if [one.upper() for one in texts[place : place + 2]] != ["OPTIONS", "("]:
        raise wrong
    place += 2
    options: dict[str, str] = {}
    while True:
        if place + 3 >= len(tokens):
            raise wrong
        name, equals, value = tokens[place : place + 3]
        key = name.text.lower()
        if key not in OPTIONS or key in options or equals.token_type != TokenType.EQ:
            raise wrong
        if value.token_type not in {TokenType.NUMBER, TokenType.VAR, TokenType.IDENTIFIER}:
            raise wrong
        options[key] = value.text
        place += 3
        if tokens[place].token_type == TokenType.R_PAREN:
            return tokens[place].end + 1, options
        if tokens[place].token_type != TokenType.COMMA:
            raise wrong
        place += 1
