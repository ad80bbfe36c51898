"""Explanation: an answer, the evidence for it, and what the answer loses without that evidence.

Value objects: names in; JSON, text and tables out. Names of fields are keys of the JSON. Ids and
tensors are in ``find`` and ``check``.
"""

from math import exp
from typing import Literal

from pydantic import BaseModel, ConfigDict

from knowformer.calibration.calibrator import ProbabilityKind
from knowformer.data.labels import Labels
from knowformer.tables import Cell, Column, TableView, Tabular

EvidenceKind = Literal["paths", "prototypes", "attended"]
FaithfulnessVerdict = Literal[
    "carry the answer", "contribute", "hardly matter", "are no better than random"
]

NO_CHANGE = 0.05  # log-odds: five percent of the odds
MANY_FOLD = 1000
CARRIES, CONTRIBUTES = 1.0, 0.1  # log-odds lost: odds that fall below 0.37, and below 0.90


def verdict_on(lost: float, at_random: float, *, beats_random: bool) -> FaithfulnessVerdict:
    """Returns how far an answer rests on evidence.

    Args:
        lost: log-odds of truth that are lost without the evidence.
        at_random: mean log-odds lost without random evidence of the same size.
        beats_random: whether the evidence costs more than random evidence beyond doubt.
    """
    if not beats_random:
        return "are no better than random"
    effect = min(lost, lost - at_random)
    if effect < CONTRIBUTES:
        return "hardly matter"
    return "contribute" if effect < CARRIES else "carry the answer"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScoreMargin(_Value):
    """An answer's score against its competitors, the candidates that are not known answers.

    Of a model that sees a part of the graph, only competitors in that part have scores.
    """

    score: float
    """Where the model does not see the answer, the lowest score of what it sees."""
    log_odds: float
    """The score less the log-sum-exp of the competitors' scores; zero is an even chance."""
    probability: float
    """As ``answer`` gives it; in a report on a test set the log-odds as a probability."""
    truth_log_odds: float
    """Log-odds that the fact is true, of which the probability is made."""
    rank: float
    """Among all competitors, those below that the model does not see; ties count half (realistic
    rank)."""
    rank_among_all: float
    """Among all candidates, known answers too, as ``answer`` gives it."""


class ScoreDrop(_Value):
    """What an answer loses when evidence is removed; negative where it gains."""

    score: float
    log_odds: float
    probability: float
    truth_log_odds: float
    rank: float
    """Places: 2 means that the answer fell from rank 1 to rank 3."""
    rank_among_all: float

    @classmethod
    def between(cls, before: ScoreMargin, after: ScoreMargin) -> "ScoreDrop":
        """Returns the drop from ``before`` to ``after``."""
        return cls(
            score=before.score - after.score,
            log_odds=before.log_odds - after.log_odds,
            probability=before.probability - after.probability,
            truth_log_odds=before.truth_log_odds - after.truth_log_odds,
            rank=after.rank - before.rank,
            rank_among_all=after.rank_among_all - before.rank_among_all,
        )


class Step(_Value):
    """One fact of a path, walked from ``start`` to ``end``."""

    start: str
    relation: str
    end: str
    backwards: bool
    """True: the fact is relation(end, start), walked against its direction."""


class EvidencePath(_Value):
    """A path from the question's entity to the answer."""

    steps: list[Step]
    weight: float
    """Mean gradient in its facts: log-odds that each of them brings, to first order."""
    loss: ScoreDrop
    """What the answer loses when the facts of this path alone are removed."""


class AttendedEntity(_Value):
    """An entity that is attended to, and what that does for the answer."""

    entity: str
    influence: float
    """Log-odds that the answer loses when no entity attends to it, to first order."""
    attention: float
    """The answer's attention to it over the mean: 2 is twice as much."""


class HeadAttention(_Value):
    """What the answer attends to most in one layer and head."""

    layer: int
    head: int
    entities: list[AttendedEntity]


class Faithfulness(_Value):
    """What removing the named evidence costs, beside random evidence of the same size."""

    evidence: EvidenceKind
    size: int
    """Facts or entities removed."""
    loss: ScoreDrop
    random: list[ScoreDrop]
    """One for each draw of random evidence, as near to the question."""
    verdict: FaithfulnessVerdict
    """How far the answer rests on this evidence, in words."""

    @property
    def pieces(self) -> str:
        """What the evidence is made of: facts or entities."""
        return "facts" if self.evidence == "paths" else "entities"

    @property
    def random_log_odds(self) -> float:
        """The mean log-odds lost without random evidence."""
        return mean_of(self.random, "truth_log_odds")

    @property
    def matters(self) -> bool:
        """Whether the answer rests on this evidence, as a whole or in part."""
        return self.verdict in ("carry the answer", "contribute")

    @property
    def title(self) -> str:
        """What was removed."""
        return f"its {self.evidence} ({self.pieces_in_words})"

    @property
    def pieces_in_words(self) -> str:
        """How many facts or entities were removed."""
        one = "fact" if self.evidence == "paths" else "entity"
        return f"1 {one}" if self.size == 1 else f"{self.size} {self.pieces}"

    def sentence(self) -> str:
        """Returns the verdict and its figures as a sentence."""
        return (
            f"Its {self.evidence} {self.verdict}: without their {self.pieces_in_words} its "
            f"{odds_in_words(self.loss.truth_log_odds)} (probability lost: "
            f"{signed(self.loss.probability)}), without others at random its "
            f"{odds_in_words(self.random_log_odds)}"
        )


def mean_of(drops: list[ScoreDrop], measure: str) -> float:
    """Returns the mean of one measure over some drops, zero if there are none."""
    return sum(getattr(drop, measure) for drop in drops) / max(1, len(drops))


def odds_in_words(lost: float) -> str:
    """Returns what a loss of log-odds does to the odds, in words; a gain is a negative loss."""
    moves, times = ("fall" if lost > 0 else "rise"), exp(min(abs(lost), 50.0))
    if abs(lost) < NO_CHANGE:
        return "odds hardly change"
    if times < 2:
        return f"odds {moves} by {100 * abs(exp(-lost) - 1):.0f} %"
    if times > MANY_FOLD:
        return f"odds {moves} >{MANY_FOLD:,}-fold"
    return f"odds {moves} {times:.{1 if times < 10 else 0}f}-fold"


def signed(lost: float) -> str:
    """Returns a probability that is lost, or gained if it is negative."""
    least = 0.001
    if 0 < abs(lost) < least / 2:
        return f"{'<' if lost > 0 else '>-'}{least}"
    return f"{lost + 0.0:.3f}"


class Explanation(Tabular, _Value):
    """Why an answer was given."""

    head: str
    relation: str
    tail: str
    asks_for: Literal["head", "tail"]
    standing: ScoreMargin
    """The answer's score margin."""
    num_rivals: int
    """Competitors of the answer."""
    num_candidates: int
    """Competitors, known answers and the answer itself."""
    probability_kind: ProbabilityKind = "model"
    fact_hidden: bool
    """True: the graph holds the fact itself, which was hidden from the model to find reasons."""
    paths: list[EvidencePath]
    no_paths: str | None
    """Why there are none, if there are none."""
    prototypes: list[AttendedEntity]
    """Attended entities that the answer gains by, the most influential first."""
    attended: list[AttendedEntity]
    """Entities with the largest attention, whatever it does for the answer."""
    heads: list[HeadAttention]
    no_prototypes: str | None
    """Why there are none, if there are none."""
    without_attention: ScoreDrop | None
    """What the answer loses when no entity attends to others; negative where it gains."""
    faithfulness: list[Faithfulness]
    seconds: float
    entity_labels: dict[str, str] = {}
    """Readable names of the entities that are mentioned, where they have one."""
    relation_labels: dict[str, str] = {}

    @property
    def labels(self) -> Labels:
        """Readable names of what the explanation mentions."""
        return Labels(self.entity_labels, self.relation_labels)

    def with_labels(self, labels: Labels) -> "Explanation":
        """Returns the explanation with the readable names of what it mentions."""
        attended = [*self.prototypes, *self.attended, *(e for h in self.heads for e in h.entities)]
        steps = [step for path in self.paths for step in path.steps]
        entities = {self.head, self.tail, *(entry.entity for entry in attended)}
        entities |= {name for step in steps for name in (step.start, step.end)}
        relations = {self.relation, *(step.relation for step in steps)}
        return self.model_copy(
            update={
                "entity_labels": {
                    name: labels.entities[name]
                    for name in sorted(entities & labels.entities.keys())
                },
                "relation_labels": {
                    name: labels.relations[name]
                    for name in sorted(relations & labels.relations.keys())
                },
            }
        )

    @property
    def prototypes_matter(self) -> bool:
        """Whether the answer rests on its prototypes, so that they are worth showing."""
        return any(check.matters for check in self.faithfulness if check.evidence == "prototypes")

    @property
    def asked_from(self) -> str:
        """The entity that the question starts from, where paths begin."""
        return self.tail if self.asks_for == "head" else self.head

    @property
    def answer(self) -> str:
        """The entity that is explained as the answer, where paths end."""
        return self.head if self.asks_for == "head" else self.tail

    def question(self) -> str:
        """Returns the question as it is written in the literature, in readable names."""
        labels = self.labels
        head = "?" if self.asks_for == "head" else labels.entity(self.head)
        tail = "?" if self.asks_for == "tail" else labels.entity(self.tail)
        return f"({head}, {labels.relation(self.relation)}, {tail})"

    def place(self) -> str:
        """Returns where the answer stands, as ``answer`` says it, in words."""
        here = self.standing
        shown = f"{here.probability:.3f}"
        if 0 < here.probability < 0.0005:
            shown = "<0.001"
        elif 0.9995 < here.probability < 1:
            shown = ">0.999"
        place = f"rank {here.rank_among_all:,g} of {self.num_candidates:,}, probability {shown}"
        if here.rank_among_all == here.rank:
            return place
        return f"{place}; rank {here.rank:,g} once other known facts are left out"

    def path_text(self, path: EvidencePath) -> str:
        """Returns a path on one line; a fact that is walked backwards has its arrow turned."""
        labels = self.labels
        words = [labels.entity(path.steps[0].start)] if path.steps else []
        for step in path.steps:
            relation = labels.relation(step.relation)
            arrow = f"<-[{relation}]-" if step.backwards else f"-[{relation}]->"
            words += [arrow, labels.entity(step.end)]
        return " ".join(words)

    def verdicts(self) -> list[str]:
        """Returns a sentence for each kind of evidence: how far to trust it."""
        return [entry.sentence() for entry in self.faithfulness]

    def table(self) -> TableView:
        """Returns the evidence as a table, a row for each path and each prototype."""
        columns = [
            Column("evidence"),
            Column("text"),
            Column("lost", is_number=True),
            Column("log-odds lost", is_number=True),
            Column("weight", decimals=4, is_number=True, is_shown=False),
            Column("attention", decimals=2, is_number=True, is_shown=self.prototypes_matter),
        ]
        paths: list[list[Cell]] = [
            [
                *("path", self.path_text(path)),
                *(path.loss.probability, path.loss.truth_log_odds, path.weight, None),
            ]
            for path in self.paths
        ]
        prototypes: list[list[Cell]] = [
            ["prototype", self.labels.entity(p.entity), None, None, p.influence, p.attention]
            for p in (self.prototypes if self.prototypes_matter else [])
        ]
        return TableView(
            title=f"{self.question()} {self.labels.entity(self.answer)}",
            columns=columns,
            rows=[*paths, *prototypes],
            caption="; ".join(filter(None, [self.no_paths, self.no_prototypes, *self.verdicts()])),
        )

    def __str__(self) -> str:
        lines = [
            f"{self.question()} {self.labels.entity(self.answer)}: {self.place()}",
            *([] if self.no_paths is None else [self.no_paths]),
            *(
                f"  lost without: {signed(path.loss.probability)}  {self.path_text(path)}"
                for path in self.paths
            ),
            *([] if self.no_prototypes is None else [self.no_prototypes]),
            *(
                f"  prototype: {self.labels.entity(p.entity)}"
                for p in (self.prototypes if self.prototypes_matter else [])
            ),
            *self.verdicts(),
        ]
        return "\n".join(lines)
