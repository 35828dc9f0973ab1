"""One module for each engine that counts rows: DuckDB, SQLAlchemy databases, SQLite, Spark."""
