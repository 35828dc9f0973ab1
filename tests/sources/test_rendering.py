"""What is sent holds everything that was said: sqlglot may not drop a part of it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlglot import exp, parse_one

from topsecret.errors import DataIndependentFailure
from topsecret.sources.sql import dialects, loaded_dialects, rendering
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


NAMES_A_DIALECT = re.compile(
    r"(?<!asking)(?<!_spark)\.sql\((?!\))|sqlglot\.(parse|tokenize)|import.*\bparse\b|get_or_raise"
)


def test_whoever_names_a_dialect_has_them_all() -> None:
    """sqlglot registers a dialect before it is complete; see ``loaded_dialects``."""
    names = [f"sqlglot.dialects.{one}" for one in dialects.DIALECTS]
    loaded = (
        f"import sys, {loaded_dialects.__name__}; sys.exit(not {{*{names}}} <= {{*sys.modules}})"
    )
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
    users = [
        path
        for path in Path(rendering.__file__).parents[2].rglob("*.py")
        if re.search(r"^(from|import) sqlglot", text := path.read_text("utf-8"), re.MULTILINE)
        and NAMES_A_DIALECT.search(re.sub(r'""".*?"""', "", text, flags=re.DOTALL))
    ]
    assert len(users) > 5
    without = [
        path.name for path in users if "import loaded_dialects" not in path.read_text("utf-8")
    ]
    assert without == []
