"""What is sent holds everything that was said: sqlglot may not drop a part of it."""

import pytest
from sqlglot import exp, parse_one

from topsecret.errors import DataIndependentFailure
from topsecret.sources.sql import rendering
from topsecret.sources.sql.rendering import rendered


def test_an_argument_that_would_be_dropped_is_found() -> None:
    name = exp.to_table("kept")
    kept = exp.select("x").from_(name)
    kept.set("sample_of_everything", exp.true())
    with pytest.raises(DataIndependentFailure, match=r"does not know Select.sample_of_everything"):
        rendered(kept, "duckdb")
    inside = exp.select("y").from_(kept.subquery())
    with pytest.raises(DataIndependentFailure, match=r"does not know Select"):
        rendered(inside, "postgres")


def test_what_a_dialect_lacks_is_found_and_not_left_out() -> None:
    lost = parse_one("SELECT x FROM t TABLESAMPLE (10 PERCENT)", read="duckdb")
    with pytest.raises(DataIndependentFailure, match="cannot write this question for mysql"):
        rendered(lost, "mysql")


@pytest.mark.parametrize("dialect", rendering.RELIED_ON)
def test_another_sqlglot_that_writes_other_sql_is_refused(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = exp.Select.sql

    def without_distinct(self: exp.Select, to: str, **options: object) -> str:
        text = real(self, to, **options)
        return text.replace("DISTINCT ", "") if to == dialect else text

    monkeypatch.setattr(exp.Select, "sql", without_distinct)
    rendering._check_once.cache_clear()
    with pytest.raises(DataIndependentFailure, match=f"writes other SQL for {dialect} than"):
        rendered(exp.select("x").from_("t"), "duckdb")
    rendering._check_once.cache_clear()
