"""What goes over the wire: the schema of requests and answers."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from topsecret.service.auth.people import Role, Scope
from topsecret.service.filters import LONGEST_VALUE, MOST_CONDITIONS, TOO_LONG, TOO_MANY, Verb
from topsecret.service.grouped_by import MOST_GROUPS
from topsecret.service.preview import LARGEST_K
from topsecret.service.problems import IN_WORDS
from topsecret.sources.measures import MOST_BOUNDS

DATASET = r"^[a-z0-9][a-z0-9_-]{0,39}$"
NAME = r"^[a-z0-9][a-z0-9._-]{0,39}$"
LONGEST_QUERY = 20_000
REQUEST_ID = r"^[A-Za-z0-9._:-]{1,100}$"

DatasetName = Annotated[str, Path(pattern=DATASET, description="A dataset's name.")]
SourceName = Annotated[str, Path(pattern=DATASET, description="A database's name.")]
AccountName = Annotated[str, Path(pattern=NAME, description="An account's name.")]
SavedName = Annotated[str, Path(pattern=NAME, description="A saved question's name.")]
IDENTITY = r"^[A-Za-z0-9_-]{1,40}$"
Identity = Annotated[str, Path(pattern=IDENTITY)]
OfDataset = Annotated[str | None, Query(pattern=DATASET, description="One dataset's.")]
Before = Annotated[str | None, Query(pattern=IDENTITY, description="Older than this answer.")]
Position = Annotated[int | None, Query(ge=1, le=2**53, description="Older than this entry.")]
PageLength = Annotated[int, Query(ge=1, le=1000, description="At most so many.")]
MOST_ANSWERS, MOST_BYTES = 100, 4 * 2**20
AnswersLength = Annotated[
    int, Query(ge=1, le=1000, description=f"At most so many, and never over {MOST_ANSWERS}.")
]


def _number(value: object) -> object:
    if isinstance(value, bool):  # true is 1 in Python, and would be spent
        raise PydanticCustomError("float_type", "a number")
    return value


Number = Annotated[float, BeforeValidator(_number)]
Epsilon = Annotated[Number, Field(ge=0.001, le=20, allow_inf_nan=False)]
Delta = Annotated[Number, Field(ge=1e-12, le=0.01, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=1, le=1_000_000)]
BOUND = r"^(private|[0-9]{1,10}(\.[0-9]{1,6})?)$"


def _bound(value: object) -> object:
    if isinstance(value, str) and not re.search(BOUND, value):
        raise PydanticCustomError(
            IN_WORDS, "A bound on one person is a number like 50 or 7.5, or the word private."
        )
    return value


Bound = Annotated[str, BeforeValidator(_bound), Field(pattern=BOUND)]


def _few(value: object) -> object:
    if isinstance(value, list) and len(value) > MOST_CONDITIONS:
        raise PydanticCustomError(IN_WORDS, TOO_MANY)
    return value


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > LONGEST_VALUE:
        raise PydanticCustomError(IN_WORDS, TOO_LONG)
    return value


class Strict(BaseModel):
    """Unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid")


class FilterShape(Strict):
    """A condition on one of the columns that the owner allows."""

    column: str = Field(min_length=1, max_length=200)
    """One of the columns that rows may be chosen by."""
    verb: Verb = "is"
    """How its value is compared."""
    value: Annotated[
        str,
        Field(
            min_length=1,
            max_length=LONGEST_VALUE,
            description="A text as it is; several by commas.",
        ),
        BeforeValidator(_short),
    ]
    """A text as it is; several by commas."""


class MeasureShape(Strict):
    """What to rank by instead of people, and how much of it one person may add."""

    of: Literal["rows", "sum"]
    """What to rank by."""
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
    """A question to a dataset."""

    column: str = Field(min_length=1, max_length=200, description="One of the dataset's columns.")
    k: Annotated[int, Field(strict=True, ge=1, le=LARGEST_K)] | Literal["auto", "all"] = 10
    """How many items; "auto" for as many as stand out, "all" for all that are safe."""
    epsilon: Epsilon | None = Field(
        default=None, description="What to spend; left out where the owner fixed the price."
    )
    where: Annotated[
        list[FilterShape],
        Field(max_length=MOST_CONDITIONS, description="Only rows that fulfil all of these."),
        BeforeValidator(_few),
    ] = []
    """Only rows that fulfil all of these."""
    counts: bool = Field(default=False, description="Noisy counts with their intervals, too.")
    at_least: Annotated[int, Field(strict=True, ge=1, le=10**9)] | None = Field(
        default=None, description="Only values shown to have so many people, 95% sure."
    )
    measure: MeasureShape | None = Field(
        default=None, description="Rank by rows or by a sum instead of by people."
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
    """A question in SQL, to a dataset whose owner allows that."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY, description="One SELECT that ranks.")
    epsilon: Epsilon | None = Field(
        default=None, description="What to spend; left out where the owner fixed the price."
    )


class AskSqlShape(SqlShape, AgainShape):
    """A question in SQL to be answered and paid for."""


class SaveShape(Strict):
    """A question to be kept under a name."""

    dataset: str | None = Field(default=None, pattern=DATASET)
    """The dataset that is asked."""
    question: QuestionShape | None = None
    """What is asked."""
    answer: str | None = Field(
        default=None, pattern=IDENTITY, description="Instead: the question of an answer of yours."
    )


class AskedShape(BaseModel):
    """A question as it was asked."""

    column: str
    """The column that was ranked."""
    k: int | str
    """How many items."""
    epsilon: float | None
    """What was spent; None where the owner fixed the price."""
    where: list[FilterShape]
    """Only rows that fulfil all of these."""
    counts: bool
    """Whether noisy counts were asked for."""
    at_least: int | None = None
    """Only values shown to have so many people, 95% sure; None for any."""
    query: str | None = Field(default=None, description="The SQL, where it was asked in SQL.")
    measure: MeasureShape | None = Field(default=None, description="None for people.")
    groups: GroupsShape | None = Field(default=None, description="None for one list.")


class SavedShape(AskedShape):
    """A question that is kept under a name."""

    name: str
    """Under which it is kept."""
    dataset: str
    """The dataset that is asked."""
    words: str = Field(description="The question in a few words.")


class DatasetShape(BaseModel):
    """A dataset as an analyst sees it."""

    name: str
    """As addresses have it."""
    title: str
    """As pages show it."""
    columns: list[str]
    """The columns that may be ranked."""
    filters: dict[str, str] = Field(description="Columns that rows may be chosen by: their kinds.")
    price: Literal["flexible", "fixed"]
    """Whether each question chooses its epsilon or the owner fixed it."""
    state: Literal["open", "closed", "paused", "retired"]
    """Whether it can be asked, and why not."""
    sql: bool = Field(default=False, description="Whether it may be asked in SQL.")


class PreviewShape(BaseModel):
    """What a question would buy and cost."""

    k: int | str
    """How many items."""
    epsilon: float | None
    """What would be spent; None where the owner fixed the price."""
    mechanism: str
    """The algorithm by name."""
    lead: int | None
    """How far ahead an item must be to be named with 95% probability, or how much it must have."""
    lead_in: str = Field(description="What the lead counts: people, weighted people, or rows, say.")
    fits: bool
    """Whether it fits into what is left."""
    cost: float
    """The part of the account's share that it takes, from 0 to 1."""
    left: float
    """The part of the share that is left, from 0 to 1."""
    again: int
    """How many such questions fit into what is left."""
    buys: str
    """How large a lead gets an item named, in words."""
    answer: str
    """What comes back, in words."""
    protects: str
    """What is promised to each person, in words."""
    takes: str
    """What it takes from the account's share, in words."""


class AnswerShape(AskedShape):
    """A question and what became of it."""

    id: str
    """Of the answer."""
    dataset: str
    """The dataset that was asked."""
    request_id: str
    """The asker's name for the request."""
    state: Literal["working", "answered", "refused", "failed", "in-doubt"]
    """What became of it."""
    asked: str
    """When it was asked."""
    error: str | None
    """The kind of failure, in one word; None if there was none."""
    message: str | None
    """What went wrong, in words; None if nothing did."""
    cause: str | None = Field(default=None, description="Why data could not be read; for owners.")
    answer: dict[str, Any] | None = Field(
        description="One list or, under groups, one for each group."
    )


class BudgetShape(BaseModel):
    """What is left, for the asking account; amounts are exact fractions as text."""

    dataset: str
    """Whose budget it is."""
    state: str
    """open or closed."""
    epsilon: float
    """Of all answers together that the budget ever pays for, whoever asks."""
    delta: float
    """The same of delta."""
    summary: str
    """What is left for the account, in words."""
    limits: dict[str, str]
    """The account's share of each resource."""
    spent: dict[str, str]
    """What the account has spent of it."""
    left: dict[str, str]
    """What is left of the share, and no more than of the dataset; zeros are left out."""


class MeShape(BaseModel):
    """Who is logged in."""

    name: str
    role: Role


class KeyShape(BaseModel):
    """An API key without its secret."""

    id: str
    """Of the key."""
    label: str
    """The account's name for it."""
    scope: Scope
    """What it may do."""
    expires: str | None = Field(description="The day on which it ends.")


class SessionShape(BaseModel):
    """A log-in."""

    id: str
    """Of the session."""
    begun: str
    """When it was begun."""
    agent: str = Field(description="What the browser calls itself.")
    here: bool = Field(description="Whether it is the one that asks.")


class NewKeyShape(Strict):
    """A key to be made."""

    label: str = Field(min_length=1, max_length=60, pattern=r"^[A-Za-z0-9 ._-]+$")
    """Your name for it."""
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
