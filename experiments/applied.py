"""The datasets of the applications: multi-label sets for PATE, comparisons for rankings."""

from __future__ import annotations

import csv
import gzip
import io
import lzma

import numpy as np
from numpy.typing import NDArray

from experiments.data import folder

Result = tuple[str, str, bool]
"""Winner, loser, and whether it was a tie."""


def multilabel(name: str) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
    """Features, labels, and which rows are for testing (none where a set has no split)."""
    with np.load(folder() / "multilabel_mulan_meka" / f"{name}.npz") as stored:
        labels = np.unpackbits(stored["Y_packed"], axis=1)[:, : int(stored["n_labels"])]
        is_test = np.zeros(len(labels), dtype=np.bool_)
        if "is_test" in stored.files:
            is_test = stored["is_test"]
        if "X" in stored.files:
            return stored["X"], labels.astype(np.bool_), is_test
        features = np.zeros(tuple(stored["X_shape"]), dtype=np.float32)
        rows = np.repeat(np.arange(len(features)), np.diff(stored["X_indptr"]))
        features[rows, stored["X_indices"]] = stored["X_data"]
        return features, labels.astype(np.bool_), is_test


def celeba() -> NDArray[np.bool_]:
    """The 40 true attributes of each image."""
    with np.load(folder() / "celeba_attributes" / "celeba_attr_packed.npz") as stored:
        return np.unpackbits(stored["attr_packed"], axis=1).astype(np.bool_)


def arena() -> list[Result]:
    """LMSYS chatbot arena: one human vote per row."""
    path = folder() / "llm_arena_battles" / "lmsys_arena_human.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    results = []
    for row in rows:
        first, second = row["model_a"], row["model_b"]
        if row["winner"] == "model_b":
            first, second = second, first
        results.append((first, second, row["winner"].startswith("tie")))
    return results


def football() -> list[Result]:
    """International football: a row per match, draws included."""
    with lzma.open(folder() / "international_football" / "results.csv.xz", "rt") as file:
        rows = list(csv.DictReader(io.StringIO(file.read())))
    results = []
    for row in rows:
        home, away = float(row["home_score"]), float(row["away_score"])
        pair = (row["home_team"], row["away_team"])
        results.append((*(pair if home >= away else pair[::-1]), home == away))
    return results


def tennis() -> list[Result]:
    """ATP matches; nobody ties."""
    with lzma.open(folder() / "tennis_matches" / "atp_matches.csv.xz", "rt") as file:
        rows = list(csv.DictReader(io.StringIO(file.read())))
    return [(row["winner_name"], row["loser_name"], False) for row in rows]
