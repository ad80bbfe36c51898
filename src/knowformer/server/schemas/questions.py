"""Questions and their answers; answers and explanations are what ``--json`` prints."""

from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from knowformer.answering.responses import AnswerResponse, AnswersResponse
from knowformer.answering.results import AskedFor
from knowformer.answering.what_if import Move
from knowformer.choices import AsksFor
from knowformer.explanation.explanation import Explanation
from knowformer.server.schemas.fields import (
    Fact,
    Flag,
    Name,
    NumAnswers,
    NumEvidence,
    NumSamples,
    OnSnapshot,
    Request,
)
from knowformer.server.settings import MAX_CANDIDATES, MAX_CHANGES

AnswerStatus = Literal["known", "new", "held_out"]


class QuestionRequest(Request):
    """Two of head, relation and tail; the third is asked for."""

    head: Name | None = None
    relation: Name | None = None
    tail: Name | None = None

    @property
    def parts(self) -> dict[str, str | None]:
        """The three names, None for what is asked."""
        return {"head": self.head, "relation": self.relation, "tail": self.tail}


class AnswerRequest(QuestionRequest):
    """A question, and how to answer it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"head": "aspirin", "relation": "treats", "k": 5, "new_only": True},
                {"relation": "treats", "tail": "headache"},
                {"head": "aspirin", "tail": "headache"},
            ]
        }
    )

    k: NumAnswers = 10
    new_only: Flag = False
    """Leave out answers that are known facts."""
    samples: NumSamples = 1
    """Draws of the model's noise; more than one adds a spread to each answer."""
    typical: Flag = True
    """Say how each answer ranks for other heads (or tails) of the relation."""
    of_type: Name | None = None
    """Only entities of a type may answer: R:head, R:tail or R=T."""
    candidates: Annotated[list[Name], Field(min_length=1, max_length=MAX_CANDIDATES)] | None = None
    """The only entities that may answer."""


class ExplainRequest(Fact):
    """An answer to explain."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"head": "aspirin", "relation": "treats", "tail": "headache"}]
        }
    )

    asks_for: AsksFor = "tail"
    paths: NumEvidence = 3
    prototypes: NumEvidence = 3


class StatusedAnswer(AnswerResponse):
    """One candidate, and what is known of it."""

    status: AnswerStatus | None = None
    """Of an entity: a known fact of the graph, one that training held out, or a new one."""


class AnswersOnSnapshot(AnswersResponse):
    """A question and its answers, best first; what ``answer --json`` prints, and the snapshot."""

    answers: list[StatusedAnswer]  # pyright: ignore[reportIncompatibleVariableOverride]
    snapshot: int


class ExplanationOnSnapshot(Explanation):
    """Why an answer was given; what ``explain --json`` prints, and the snapshot."""

    snapshot: int


class WhatIfRequest(QuestionRequest):
    """A question, asked as if facts were there or were not."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "head": "aspirin",
                    "relation": "treats",
                    "without": [{"head": "aspirin", "relation": "resembles", "tail": "ibuprofen"}],
                }
            ]
        }
    )

    k: NumAnswers = 10
    new_only: Flag = False
    without: list[Fact] = Field(default_factory=list[Fact], max_length=MAX_CHANGES)
    """Facts of the graph to leave out."""
    with_: list[Fact] = Field(default_factory=list[Fact], max_length=MAX_CHANGES, alias="with")
    """Facts to add."""


class MoveResponse(BaseModel):
    """A candidate that is among the best before the change, or after it."""

    entity: str | None = None
    relation: str | None = None
    """Instead of ``entity``, when a relation was asked for."""
    label: str | None
    rank_before: int | None
    rank_after: int | None
    probability_before: float | None
    probability_after: float | None

    @classmethod
    def of(cls, move: Move, asks_for: AskedFor) -> "MoveResponse":
        """Returns a move as JSON."""
        content = asdict(move)
        name = content.pop("name")
        return cls(**{"relation" if asks_for == "relation" else "entity": name}, **content)


class WhatIfResponse(OnSnapshot):
    """The answers before and after, and what moved."""

    before: AnswersResponse
    after: AnswersResponse
    moves: list[MoveResponse]


class CompareRequest(Request):
    """A question for a head or a tail, and two entities that may answer it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "head": "aspirin",
                    "relation": "treats",
                    "first": "headache",
                    "second": "migraine",
                }
            ]
        }
    )

    head: Name | None = None
    relation: Name
    tail: Name | None = None
    first: Name
    second: Name
    paths: NumEvidence = 3
    prototypes: NumEvidence = 3


class ComparedAnswer(BaseModel):
    """One of two answers."""

    entity: str
    rank: float
    probability: float
    explanation: Explanation

    @classmethod
    def of(cls, explanation: Explanation) -> "ComparedAnswer":
        """Returns an explained answer with its place."""
        return cls(
            entity=explanation.answer,
            rank=explanation.standing.rank_among_all,
            probability=explanation.standing.probability,
            explanation=explanation,
        )


class CompareResponse(OnSnapshot):
    """Two answers, the evidence of each side by side."""

    first: ComparedAnswer
    second: ComparedAnswer
