"""Answers as JSON: what ``--json`` prints and what files of answers hold."""

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ConfigDict

from knowformer.answering.results import Answer, Answers, AskedFor, MissingFacts, NoiseSpread
from knowformer.calibration.calibration import ProbabilityBasis
from knowformer.calibration.calibrator import ProbabilityKind


class Response(BaseModel):
    """A result as JSON; the order of the fields is that of the keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def content(self) -> dict[str, Any]:
        """Returns what JSON is made of; optional fields that were not given are left out."""
        return self.model_dump(mode="json", exclude_unset=True)


class AskedQuestion(Response):
    """A question, and what it was asked of."""

    head: str | None
    relation: str | None
    tail: str | None
    asks_for: AskedFor
    candidates: int
    known: int
    probability_kind: ProbabilityKind
    """What the probabilities are: calibrated, or as the model's link function gives them."""
    probability_basis: ProbabilityBasis | None = None
    """Questions and facts of this relation and side that the probabilities were fitted on."""


class AnswerResponse(Response):
    """One candidate."""

    entity: str | None = None
    relation: str | None = None
    """Instead of ``entity``, when a relation was asked for."""
    rank: int
    score: float
    probability: float
    known: bool
    label: str | None = None
    spread: NoiseSpread | None = None
    share: float | None = None
    """Of a relation: the probability that it is this one, given that one holds."""
    typical_rank: int | None = None

    @classmethod
    def of(cls, answer: Answer, asks_for: AskedFor) -> "AnswerResponse":
        """Returns an answer as JSON."""
        names = ("label", "spread", "share", "typical_rank")
        optional = {name: getattr(answer, name) for name in names}
        return cls(
            **{"relation" if asks_for == "relation" else "entity": answer.name},
            rank=answer.rank,
            score=answer.score,
            probability=answer.probability,
            known=answer.known,
            **{name: value for name, value in optional.items() if value is not None},
        )


class AnswersResponse(Response):
    """A question and its answers, best first."""

    query: AskedQuestion
    answers: list[AnswerResponse]

    @classmethod
    def of(cls, answers: Answers) -> "AnswersResponse":
        """Returns answers as JSON."""
        return cls(
            query=AskedQuestion(
                head=answers.head,
                relation=answers.relation,
                tail=answers.tail,
                asks_for=answers.asks_for,
                candidates=answers.num_candidates,
                known=answers.num_known,
                probability_kind=answers.probability_kind,
                **_basis(answers.probability_basis),
            ),
            answers=[AnswerResponse.of(answer, answers.asks_for) for answer in answers.answers],
        )


class MissingFactsQuestion(Response):
    """A relation whose missing facts were asked for."""

    all_missing: str
    questions: int
    candidates: int
    probability_kind: ProbabilityKind
    probability_basis: ProbabilityBasis | None = None


class MissingFactResponse(Response):
    """One new fact."""

    head: str
    relation: str
    tail: str
    rank: int
    score: float
    probability: float
    head_label: str | None = None
    tail_label: str | None = None


class MissingFactsResponse(Response):
    """New facts of a relation, most probable first."""

    query: MissingFactsQuestion
    facts: list[MissingFactResponse]

    @classmethod
    def of(cls, missing: MissingFacts) -> "MissingFactsResponse":
        """Returns missing facts as JSON."""
        facts = [asdict(fact) for fact in missing.facts]
        return cls(
            query=MissingFactsQuestion(
                all_missing=missing.relation,
                questions=missing.num_questions,
                candidates=missing.num_candidates,
                probability_kind=missing.probability_kind,
                **_basis(missing.probability_basis),
            ),
            facts=[
                MissingFactResponse(**{k: v for k, v in fact.items() if v is not None})
                for fact in facts
            ],
        )


def _basis(basis: ProbabilityBasis | None) -> dict[str, ProbabilityBasis]:
    """Returns the field, or nothing where there is none: optional fields are then left out."""
    return {} if basis is None else {"probability_basis": basis}
