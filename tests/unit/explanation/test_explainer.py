from collections.abc import Callable

import pytest

from knowformer.choices import AsksFor
from knowformer.data.labels import Labels
from knowformer.errors import VocabularyError
from knowformer.explanation.explainer import Explainer
from knowformer.explanation.explanation import Explanation
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph

Explain = Callable[..., Explanation]


@pytest.fixture
def explain(family: KnowledgeGraph, finder: Callable[..., EvidenceFinder]) -> Explain:
    """A function: a fact of the family, and settings of the model, to its explanation."""

    def run(
        head: str,
        relation: str,
        tail: str,
        *,
        settings: dict[str, object] | None = None,
        **how: object,
    ) -> Explanation:
        labels = Labels({"bob": "Bob Smith"}, {"mother_of": "is mother of"})
        found = finder(family, seed=3, **(settings or {}))  # a model with paths both ways
        explainer = Explainer(found, labels=labels, seed=0)
        return explainer.explain(head, relation, tail, num_prototypes=3, **how)  # pyright: ignore[reportArgumentType]

    return run


def check_path(explanation: Explanation, graph: KnowledgeGraph) -> None:
    names = {(h, r, t) for h, r, t in graph.facts.tolist()}
    for path in explanation.paths:
        assert path.steps[0].start == explanation.asked_from
        assert path.steps[-1].end == explanation.answer
        assert path.weight > 0
        for step in path.steps:
            ends = (step.end, step.start) if step.backwards else (step.start, step.end)
            head, tail = (graph.entities.id(name) for name in ends)
            assert (head, graph.relations.id(step.relation), tail) in names
        for one, other in zip(path.steps, path.steps[1:], strict=False):
            assert one.end == other.start


@pytest.mark.parametrize("asks_for", ["head", "tail"])
def test_paths_go_from_the_question_to_the_answer_over_facts(
    explain: Explain, family: KnowledgeGraph, asks_for: str
) -> None:
    found = explain("eve", "mother_of", "bob", asks_for=asks_for)
    assert found.paths
    assert found.no_paths is None
    assert not found.fact_hidden
    check_path(found, family)
    assert [path.weight for path in found.paths] == sorted(
        (path.weight for path in found.paths), reverse=True
    )


def test_a_known_fact_is_hidden_and_no_reason_for_itself(
    explain: Explain, family: KnowledgeGraph
) -> None:
    found = explain("ann", "mother_of", "bob")
    assert found.fact_hidden
    check_path(found, family)
    for path in found.paths:
        for step in path.steps:
            assert (step.start, step.relation, step.end) != ("ann", "mother_of", "bob")


def test_every_kind_of_evidence_is_checked_against_random_evidence(explain: Explain) -> None:
    found = explain("eve", "mother_of", "bob", num_draws=2)
    kinds = {entry.evidence: entry for entry in found.faithfulness}
    facts = {
        (step.end, step.relation, step.start)
        if step.backwards
        else (step.start, step.relation, step.end)
        for path in found.paths
        for step in path.steps
    }
    assert kinds["paths"].size == len(facts)
    assert all(len(entry.random) == 2 for entry in kinds.values())
    if found.prototypes:
        assert kinds["prototypes"].size == len(found.prototypes)
    assert [said.partition(":")[0] for said in found.verdicts()] == [
        f"Its {entry.evidence} {entry.verdict}" for entry in found.faithfulness
    ]
    assert found.verdicts()[0] in str(found)
    assert found.without_attention is not None


def test_attention_is_given_in_all_and_by_layer_and_head(explain: Explain) -> None:
    found = explain("eve", "mother_of", "bob")
    assert [(entry.layer, entry.head) for entry in found.heads] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert all(len(entry.entities) == 3 for entry in found.heads)
    named = {each.entity for entry in found.heads for each in entry.entities}
    assert "bob" not in named | {each.entity for each in found.attended}
    assert all(each.influence > 0 for each in found.prototypes)


def test_an_answer_that_cannot_be_reached_is_told_plainly(explain: Explain) -> None:
    found = explain("eve", "mother_of", "zoe")
    assert found.paths == []
    assert found.no_paths == "No path of facts leads from eve to zoe."
    assert "paths" not in {entry.evidence for entry in found.faithfulness}


def test_an_answer_too_far_away_is_told_with_its_distance(explain: Explain) -> None:
    found = explain("eve", "mother_of", "bob", settings={"num_layers": 1, "num_value_hops": 1})
    assert found.no_paths == (
        "The shortest path from eve to Bob Smith has 2 facts, and this model looks no further than "
        "1."
    )


def test_the_head_as_its_own_answer_has_no_path(explain: Explain) -> None:
    assert "there is no path to go" in str(explain("eve", "mother_of", "eve").no_paths)


@pytest.mark.parametrize(
    ("settings", "part"),
    [({"attention": False}, "no_prototypes"), ({"num_value_hops": 0}, "no_paths")],
    ids=["no attention", "no value hops"],
)
def test_a_model_that_lacks_a_part_says_so(
    explain: Explain, settings: dict[str, object], part: str
) -> None:
    said = getattr(explain("eve", "mother_of", "bob", settings=settings), part)
    assert "this model" in said.lower()


def test_explaining_twice_gives_the_same(explain: Explain) -> None:
    first, second = (explain("eve", "mother_of", "bob") for _ in range(2))
    assert first.model_copy(update={"seconds": 0.0}) == second.model_copy(update={"seconds": 0.0})


def test_readable_names_are_understood_and_shown(explain: Explain) -> None:
    found = explain("eve", "is mother of", "Bob Smith")
    assert (found.relation, found.tail) == ("mother_of", "bob")
    assert found.question() == "(eve, is mother of, ?)"
    assert found.entity_labels == {"bob": "Bob Smith"}
    assert all("Bob Smith" in found.path_text(path) for path in found.paths)


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        (("evee", "mother_of", "bob"), "Did you mean 'eve'"),
        (("eve", "mother", "bob"), "mother_of"),
        (("eve", "mother_of", "bobb"), "bob"),
    ],
    ids=["head", "relation", "tail"],
)
def test_an_unknown_name_is_answered_with_near_spellings(
    explain: Explain, fact: tuple[str, str, str], said: str
) -> None:
    with pytest.raises(VocabularyError, match=said):
        explain(*fact)


def test_an_explanation_survives_json_and_becomes_a_table(explain: Explain) -> None:
    found = explain("eve", "mother_of", "bob")
    assert Explanation.model_validate_json(found.model_dump_json()) == found
    frame = found.to_pandas()
    assert len(frame) == len(found.paths) + len(found.prototypes)
    assert frame["weight"].tolist()[0] == found.paths[0].weight
    assert "(eve, is mother of, ?)" in found._repr_html_()
    assert "(eve, is mother of, ?) Bob Smith: rank" in str(found)


@pytest.fixture
def wide(random_graph: Callable[..., KnowledgeGraph]) -> KnowledgeGraph:
    """A graph of which views of twelve entities are a part."""
    return random_graph(2, num_entities=30, num_facts=60)


@pytest.mark.parametrize("asks_for", ["head", "tail"])
def test_in_a_view_facts_and_entities_go_by_their_own_names(
    wide: KnowledgeGraph, finder: Callable[..., EvidenceFinder], asks_for: AsksFor
) -> None:
    bound = finder(wide, seed=2, view_size=12)
    explainer = Explainer(bound, labels=Labels(), seed=0)
    names = wide.entities.names
    found = [explainer.explain(names[0], "r1", name, asks_for=asks_for) for name in names[1:]]
    assert any(each.paths for each in found)
    for each in found:
        check_path(each, wide)
        ids = [wide.entities.id(name) for name in (each.asked_from, each.answer)]
        relation = 1 if asks_for == "tail" else inverse_of(1, len(wide.relations))
        evidence = bound.find(bound.prediction(ids[0], relation, ids[1]))
        members = {names[entity] for entity in evidence.graph.entities.tolist()}
        assert {entry.entity for entry in each.prototypes + each.attended} <= members
        assert (each.heads == []) == (each.answer not in members)


def test_an_answer_that_the_model_did_not_see_is_told_plainly(
    wide: KnowledgeGraph, finder: Callable[..., EvidenceFinder]
) -> None:
    bound = finder(wide, seed=2, view_size=12)
    seen = set(bound.sight.of(bound.prediction(0, 1, 1)).entities.tolist())
    unseen = next(entity for entity in range(30) if entity not in seen)
    labels = Labels({f"e{unseen}": "Far Away"}, {})
    found = Explainer(bound, labels=labels, seed=0).explain("e0", "r1", "Far Away")
    assert found.no_paths == (
        "The model did not see Far Away: this question shows it 12 of 30 entities, those nearest "
        "to e0 and frequent tails of r1, and all others rank below them by the same measure and "
        "count with their lowest score."
    )
    assert found.no_prototypes == "An entity that the model did not see attends to none."
    assert found.paths == found.prototypes == found.attended == found.heads == []
    assert found.faithfulness == []
    assert found.without_attention is None
    assert 12 < found.standing.rank <= found.num_rivals + 1
    assert found.no_paths in str(found)
    assert Explanation.model_validate_json(found.model_dump_json()) == found


def test_no_path_within_a_view_is_told_as_such(finder: Callable[..., EvidenceFinder]) -> None:
    # c is in the view since it is the most frequent tail of s, and no fact leads there from a.
    facts = [("a", "r", "b"), ("d", "s", "c"), ("e", "s", "c"), ("f", "s", "g")]
    graph = KnowledgeGraph.from_triples(facts)
    explainer = Explainer(finder(graph, view_size=3), labels=Labels(), seed=0)
    assert explainer.explain("a", "s", "c").no_paths == (
        "No path of facts leads from a to c among the 3 entities that the model saw."
    )
