"""The SQL that every engine is asked in: statements, dialects, expressions, conditions."""
