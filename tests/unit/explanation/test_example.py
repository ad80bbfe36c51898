from collections.abc import Callable

import pytest

from knowformer.data.labels import Labels
from knowformer.errors import DataError
from knowformer.explanation.example import NUM_EXPLAINED, choose_example
from knowformer.explanation.explainer import Explainer
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.graph.knowledge_graph import KnowledgeGraph

FOUND = [("eve", "mother_of", "bob"), ("ann", "married_to", "dan"), ("dan", "father_of", "cid")]


@pytest.fixture
def explainer(family: KnowledgeGraph, finder: Callable[..., EvidenceFinder]) -> Explainer:
    return Explainer(finder(family, seed=3), labels=Labels(), seed=0)


def lost(explainer: Explainer, fact: tuple[str, str, str]) -> float:
    """Of the probability, without the paths of an answer, beyond what others at random cost."""
    (paths,) = (f for f in explainer.explain(*fact).faithfulness if f.evidence == "paths")
    at_random = sum(drop.probability for drop in paths.random) / len(paths.random)
    return paths.loss.probability - max(0.0, at_random)


def test_the_example_is_the_answer_that_rests_most_on_its_paths(explainer: Explainer) -> None:
    steps: list[tuple[int, int]] = []
    asked = choose_example(
        explainer, FOUND, num_asked=9, progress=lambda done, of: steps.append((done, of))
    )
    best = max(FOUND, key=lambda fact: lost(explainer, fact))
    shown = asked.explanation
    assert (shown.head, shown.relation, shown.tail) == best
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert "Of 9 test facts, hidden from the model, it ranks 3 first" in asked.rule


def test_few_are_explained_and_none_is_refused(explainer: Explainer) -> None:
    assert choose_example(explainer, FOUND * 4, num_asked=12).num_explained == NUM_EXPLAINED
    with pytest.raises(DataError, match=r"none among 12 test facts\. Train the model longer"):
        choose_example(explainer, [], num_asked=12)
