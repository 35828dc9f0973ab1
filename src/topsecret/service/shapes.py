"""What goes over the wire: the schema of requests and answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from topsecret.service.auth.people import Role, Scope
from topsecret.service.filters import Verb
from topsecret.service.grouped_by import MOST_GROUPS
from topsecret.service.preview import LARGEST_K
from topsecret.sources.measures import MOST_BOUNDS

DATASET = r"^[a-z0-9][a-z0-9_-]{0,39}$"
NAME = r"^[a-z0-9][a-z0-9._-]{0,39}$"
LONGEST_QUERY = 20_000
REQUEST_ID = r"^[A-Za-z0-9._:-]{1,100}$"

DatasetName = Annotated[str, Path(pattern=DATASET, description="A data set's name.")]
SourceName = Annotated[str, Path(pattern=DATASET, description="A database's name.")]
AccountName = Annotated[str, Path(pattern=NAME, description="An account's name.")]
SavedName = Annotated[str, Path(pattern=NAME, description="A saved question's name.")]
IDENTITY = r"^[A-Za-z0-9_-]{1,40}$"
Identity = Annotated[str, Path(pattern=IDENTITY)]
OfDataset = Annotated[str | None, Query(pattern=DATASET, description="One data set's.")]
Before = Annotated[str | None, Query(pattern=IDENTITY, description="Older than this answer.")]
Position = Annotated[int | None, Query(ge=1, le=2**53, description="Older than this entry.")]
PageLength = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]
Epsilon = Annotated[float, Field(ge=0.001, le=20, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=1e-12, le=0.01, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
Bound = Annotated[str, Field(pattern=r"^(private|[0-9]{1,10}(\.[0-9]{1,6})?)$")]


class Strict(BaseModel):
    """Unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid")


class FilterShape(Strict):
    """A condition on one of the columns that the owner allows."""

    column: str = Field(min_length=1, max_length=200)
    verb: Verb = "is"
    value: str = Field(min_length=1, max_length=500, description="As text; commas for one of.")


class MeasureShape(Strict):
    """What to rank by instead of persons, and how much of it one person may add."""

    of: Literal["rows", "sum"]
    column: str | None = Field(
        default=None, min_length=1, max_length=200, description="The column that is summed."
    )
    unit: Literal["1", "0.1", "0.01", "0.001", "0.0001", "0.00001", "0.000001"] = Field(
        default="1", description="What the values of a sum are rounded to."
    )
    max_per_item: list[Bound] = Field(
        default=["private"],
        min_length=1,
        max_length=MOST_BOUNDS,
        description="The most that one person adds to one value; several, or the word private, "
        "to have one chosen privately.",
    )
    max_total: Bound | None = Field(
        default=None, description="The root of the sum of squares of all that one person adds."
    )


class GroupsShape(Strict):
    """One list for each of several values of a column, which whoever asks knows and lists."""

    by: str = Field(
        min_length=1, max_length=200, description="A column that rows may be chosen by."
    )
    values: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        min_length=1, max_length=MOST_GROUPS, description="As texts; never taken from the data."
    )
    disjoint: bool = Field(
        default=False,
        description="Keep each person in one group alone, so that each has the whole budget.",
    )


class QuestionShape(Strict):
    """A question to a data set."""

    column: str = Field(min_length=1, max_length=200, description="One of the data set's columns.")
    k: Annotated[int, Field(strict=True, ge=1, le=LARGEST_K)] | Literal["auto", "all"] = 10
    epsilon: Epsilon | None = Field(
        default=None, description="What to spend; left out where the owner fixed the price."
    )
    where: list[FilterShape] = Field(
        default=[], max_length=5, description="Only rows that fulfil all of these."
    )
    counts: bool = Field(default=False, description="Noisy counts with their intervals, too.")
    at_least: Annotated[int, Field(strict=True, ge=1, le=10**9)] | None = Field(
        default=None, description="Only values that surely have so many persons."
    )
    measure: MeasureShape | None = Field(
        default=None, description="Rank by rows or by a sum instead of by persons."
    )
    groups: GroupsShape | None = Field(
        default=None, description="One list for each of several groups of rows, with a number k."
    )


class AgainShape(Strict):
    """A saved question to be asked again."""

    request_id: str | None = Field(
        default=None,
        pattern=REQUEST_ID,
        description="Your name for this request: sent again, it finds the same answer.",
    )


class AskShape(QuestionShape, AgainShape):
    """A question to be answered and paid for."""


class SqlShape(Strict):
    """A question in SQL, to a data set whose owner allows that."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY, description="One SELECT that ranks.")
    epsilon: Epsilon | None = Field(
        default=None, description="What to spend; left out where the owner fixed the price."
    )


class AskSqlShape(SqlShape, AgainShape):
    """A question in SQL to be answered and paid for."""


class SaveShape(Strict):
    """A question to be kept under a name."""

    dataset: str | None = Field(default=None, pattern=DATASET)
    question: QuestionShape | None = None
    answer: str | None = Field(
        default=None, pattern=IDENTITY, description="Instead: the question of an answer of yours."
    )


class AskedShape(BaseModel):
    """A question as it was asked."""

    column: str
    k: int | str
    epsilon: float | None
    where: list[FilterShape]
    counts: bool
    at_least: int | None = None
    query: str | None = Field(default=None, description="The SQL, where it was asked in SQL.")
    measure: MeasureShape | None = Field(default=None, description="None for persons.")
    groups: GroupsShape | None = Field(default=None, description="None for one list.")


class SavedShape(AskedShape):
    """A question that is kept under a name."""

    name: str
    dataset: str
    words: str = Field(description="The question in a few words.")


class DatasetShape(BaseModel):
    """A data set as an analyst sees it."""

    name: str
    title: str
    columns: list[str]
    filters: dict[str, str] = Field(description="Columns that rows may be chosen by: their kinds.")
    price: Literal["flexible", "fixed"]
    state: Literal["open", "closed", "paused", "retired"]
    sql: bool = Field(default=False, description="Whether it may be asked in SQL.")


class PreviewShape(BaseModel):
    """What a question would buy and cost."""

    k: int | str
    epsilon: float | None
    mechanism: str
    lead: int | None
    lead_in: str = Field(description="What the lead counts: people, or rows and so on.")
    fits: bool
    cost: float
    left: float
    again: int
    buys: str
    answer: str
    protects: str
    takes: str


class AnswerShape(AskedShape):
    """A question and what became of it."""

    id: str
    dataset: str
    request_id: str
    state: Literal["working", "answered", "refused", "failed", "in-doubt"]
    asked: str
    error: str | None
    message: str | None
    cause: str | None = Field(default=None, description="Why data could not be read; for owners.")
    answer: dict[str, Any] | None = Field(
        description="One list or, under groups, one for each group."
    )


class BudgetShape(BaseModel):
    """What is left, for the asking account; amounts are exact fractions as text."""

    dataset: str
    state: str
    epsilon: float
    delta: float
    summary: str
    limits: dict[str, str]
    spent: dict[str, str]
    left: dict[str, str]


class MeShape(BaseModel):
    """Who is logged in."""

    name: str
    role: Role


class KeyShape(BaseModel):
    """An API key without its secret."""

    id: str
    label: str
    scope: Scope
    expires: str | None = Field(description="The day on which it ends.")


class SessionShape(BaseModel):
    """A log-in."""

    id: str
    begun: str
    agent: str = Field(description="What the browser calls itself.")
    here: bool = Field(description="Whether it is the one that asks.")


class NewKeyShape(Strict):
    """A key to be made."""

    label: str = Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9 ._-]+$")
    scope: Scope = Field(default="all", description="What it may do: ask includes reading.")
    days: Annotated[int, Field(strict=True, ge=1, le=3650)] | None = Field(
        default=None, description="How long it lasts; for good when left out."
    )


class MadeKeyShape(BaseModel):
    """A key, shown this once."""

    key: str


class DoneShape(BaseModel):
    """It is done."""

    done: bool = True


class HealthShape(BaseModel):
    """The service is up and can write to its ledger."""

    status: Literal["ok"]
