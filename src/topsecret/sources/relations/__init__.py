"""Whose rows they are: relations rebuilt with a hidden column that names the owner of each row.

A pasted query, or the definition of a view, is parsed, checked and built anew. Only the new tree
reaches an engine. docs/proofs/sql.md has the claim and its proof.
"""
