"""The statements of a paid query, built once: building them costs more than running them."""

from __future__ import annotations

from sqlalchemy import BindParameter, Boolean, bindparam, or_, select

from topsecret.ledger.schema import (
    ALLOWANCES,
    ANSWERS,
    DATASETS,
    ENTRIES,
    FIRST_FORMS,
    RESERVATIONS,
)

# Parameters in a WHERE carry the prefix: an UPDATE sets columns under their own names.
_DATASET: BindParameter[str] = bindparam("the_dataset")
_ANALYST: BindParameter[str] = bindparam("the_analyst")
_ID: BindParameter[str] = bindparam("the_id")

LOCK_DATASET = select(DATASETS).where(DATASETS.c.name == _DATASET).with_for_update()
MOVE_DATASET = (
    DATASETS.update()
    .where(DATASETS.c.name == _DATASET)
    .values({name: bindparam(name) for name in ("state", "spent", "entries", "head")})
)
ADD_ENTRY = ENTRIES.insert()

ALL_ALLOWANCES = (
    select(ALLOWANCES).where(ALLOWANCES.c.dataset == _DATASET).order_by(ALLOWANCES.c.analyst)
)
MOVE_ALLOWANCE = (
    ALLOWANCES.update()
    .where(ALLOWANCES.c.dataset == _DATASET, ALLOWANCES.c.analyst == _ANALYST)
    .values(spent=bindparam("spent"))
)

_ANSWERED = select(RESERVATIONS, ANSWERS.c.answer).outerjoin(
    ANSWERS, ANSWERS.c.reservation == RESERVATIONS.c.id
)
SAME_REQUEST = (
    _ANSWERED.add_columns(FIRST_FORMS.c.key.label("first_form"))
    .outerjoin(FIRST_FORMS, FIRST_FORMS.c.reservation == RESERVATIONS.c.id)
    .where(
        RESERVATIONS.c.dataset == _DATASET,
        RESERVATIONS.c.analyst == _ANALYST,
        RESERVATIONS.c.request == bindparam("the_request"),
    )
)
# "settled" sorts after "reserved": an answer comes before what is under way.
SAME_QUESTION = _ANSWERED.where(
    RESERVATIONS.c.dataset == _DATASET,
    RESERVATIONS.c.question == bindparam("the_question"),
    # Not IN: SQLAlchemy would write its list anew at each execution.
    or_(RESERVATIONS.c.state == "settled", RESERVATIONS.c.state == "reserved"),
).order_by(RESERVATIONS.c.state.desc(), RESERVATIONS.c.position)

SAME_FIRST_FORM = (
    _ANSWERED.join(FIRST_FORMS, FIRST_FORMS.c.reservation == RESERVATIONS.c.id)
    .where(
        FIRST_FORMS.c.dataset == _DATASET,
        FIRST_FORMS.c.key == bindparam("the_key"),
        or_(
            FIRST_FORMS.c.mechanism == bindparam("the_mechanism"),
            bindparam("any_mechanism", type_=Boolean),
        ),
        RESERVATIONS.c.state == "settled",
    )
    .order_by(RESERVATIONS.c.position)
)

ADD_RESERVATION = RESERVATIONS.insert()
ONE_RESERVATION = select(RESERVATIONS).where(RESERVATIONS.c.id == _ID)
END_RESERVATION = (
    RESERVATIONS.update()
    .where(RESERVATIONS.c.id == _ID)
    .values({name: bindparam(name) for name in ("state", "cost", "request")})
)
ADD_ANSWER = ANSWERS.insert()
