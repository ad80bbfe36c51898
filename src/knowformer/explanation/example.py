"""An example to look at first: a held-out fact that the model finds, and why; chosen by a rule."""

from collections.abc import Sequence

import torch
from pydantic import BaseModel

from knowformer.data.dataset import Split
from knowformer.errors import DataError
from knowformer.evaluation.evaluate import Progress, rank_split
from knowformer.explanation.explainer import Explainer
from knowformer.explanation.explanation import Explanation, mean_of
from knowformer.queries.known_answers import KnownAnswers
from knowformer.scoring.scorer import Scorer
from knowformer.storage.triples_io import NamedTriple

NUM_ASKED = 100  # held-out facts
NUM_EXPLAINED = 5  # of those that are found


class Example(BaseModel):
    """An explanation, and among how many it was chosen."""

    explanation: Explanation
    num_asked: int
    num_first: int
    """Facts of these that the model ranks first."""
    num_explained: int

    @property
    def rule(self) -> str:
        """How it was chosen, in words."""
        return (
            f"Of {self.num_asked:,} test facts, hidden from the model, it ranks {self.num_first:,} "
            f"first. Of the {self.num_explained:,} whose questions have the fewest other answers, "
            "this one rests most on its paths"
        )


def find_facts(scorer: Scorer, split: Split, known: KnownAnswers) -> list[NamedTriple]:
    """Returns the facts whose tail the model ranks first, those with few known answers first."""
    ranks, directed, _ = rank_split(scorer, split)
    tails = slice(len(split.facts))  # the others ask for heads
    found = directed[tails][ranks.realistic[tails] == 1.0]
    rows, _ = known.lookup(found[:, 0], found[:, 1])
    few_answers_first = torch.bincount(rows, minlength=len(found)).argsort(stable=True)
    entity, name = split.graph.entities.name, split.graph.relations.name
    return [
        (entity(head), name(relation), entity(tail))
        for head, relation, tail in found[few_answers_first].tolist()
    ]


def choose_example(
    explainer: Explainer,
    found: Sequence[NamedTriple],
    *,
    num_asked: int,
    progress: Progress | None = None,
) -> Example:
    """Explains some facts, and returns the one whose probability rests most on its paths.

    That is, which loses most without them, beyond what it loses without as many other facts.

    Args:
        explainer: reasons from facts that lack the held-out ones.
        found: head, relation and tail of the held-out facts whose tail the model ranks first; the
            first of them are explained.
        num_asked: of how many.
        progress: called with facts explained and to explain.

    Raises:
        DataError: the model ranks none first.
    """
    if not found:
        raise DataError(
            f"Expected an answer that the model ranks first to show as an example, got none among "
            f"{num_asked:,} test facts. Train the model longer."
        )
    explained: list[Explanation] = []
    few = found[:NUM_EXPLAINED]
    for head, relation, tail in few:
        explained.append(explainer.explain(head, relation, tail))
        if progress is not None:
            progress(len(explained), len(few))
    return Example(
        explanation=max(explained, key=_rests_on_paths),
        num_asked=num_asked,
        num_first=len(found),
        num_explained=len(explained),
    )


def _rests_on_paths(explanation: Explanation) -> float:
    """Returns the probability lost without the paths, beyond what is lost without other facts."""
    lost = [
        check.loss.probability - max(0.0, mean_of(check.random, "probability"))
        for check in explanation.faithfulness
        if check.evidence == "paths"
    ]
    return max(lost, default=float("-inf"))
