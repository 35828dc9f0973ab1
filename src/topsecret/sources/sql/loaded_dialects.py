"""sqlglot's dialects, loaded before anything is written or read in one of them.

sqlglot loads a dialect when it is first asked for, and registers it before it is complete: another
thread that asks meanwhile gets one that still writes standard SQL, which is another statement than
the one that was proven. So every module that names a dialect imports this one, and Python lets no
thread use it before all of it has been run.
"""

from sqlglot.dialects import (  # noqa: F401
    bigquery,
    clickhouse,
    duckdb,
    mysql,
    postgres,
    snowflake,
    spark,
    sqlite,
    trino,
)
