"""Reasoners on graphs that are given, and on graphs that grow."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from knowformer import KnowledgeGraph, ModelConfig, Reasoner, RunConfig, TrainingConfig, train
from knowformer.answering.results import Answers
from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError, DataError, VocabularyError
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import number_facts
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.runs.folder import Bundle
from knowformer.seeding import generator
from knowformer.storage.triples_io import NamedTriple

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=2)
CONFIG = RunConfig(model=SMALL, threads=1)


@pytest.fixture
def reasoner(ring: Dataset) -> Reasoner:
    """Weights as they are drawn: what is told apart here, training would not change."""
    model = KnowFormer(SMALL, num_with_inverses(len(ring.relations)))
    initialize(model, generator=generator(0, "init"))
    return Reasoner(
        Bundle(Path("run"), CONFIG, ring, model.eval(), "softmax"), ring.test.graph, threads=1
    )


def answers_on(reasoner: Reasoner, relation: str) -> list[Answers]:
    questions = [(name, relation, None) for name in reasoner.graph.entities]
    questions += [(None, relation, name) for name in reasoner.graph.entities]
    return list(reasoner.answer_many(questions, k=5))


def named_facts(graph: KnowledgeGraph) -> list[NamedTriple]:
    entities, relations = graph.entities.names, graph.relations.names
    return [(entities[h], relations[r], entities[t]) for h, r, t in graph.facts.tolist()]


def test_answers_on_a_grown_graph_are_those_on_the_graph_built_anew(reasoner: Reasoner) -> None:
    relation = reasoner.graph.relations.names[0]
    before = answers_on(reasoner, relation)
    first, *_ = named_facts(reasoner.graph)
    name = reasoner.graph.entities.names[3]
    graph = reasoner.graph.with_facts(
        added=[(name, relation, "new"), ("new", relation, "newer")], removed=[first]
    )
    grown = reasoner.on(graph)
    assert grown.graph is graph
    assert grown.model is reasoner.model
    entities = Vocabulary(graph.entities, kind="entity")
    facts = number_facts(named_facts(graph), entities, graph.relations)
    anew = reasoner.on(KnowledgeGraph(entities, graph.relations, facts))
    answers = answers_on(grown, relation)
    assert answers == answers_on(anew, relation)
    known = {a.name for a in grown.answer(head=name, relation=relation, k=99).answers if a.known}
    assert "new" in known
    assert answers_on(reasoner, relation) == before


def test_relations_in_another_order_are_renumbered_and_all_entities_may_be_new(
    reasoner: Reasoner, tmp_path: Path
) -> None:
    names = list(reversed(reasoner.graph.relations.names))
    triples = [(f"x{number}", names[number % len(names)], f"x{number + 1}") for number in range(9)]
    path = tmp_path / "other.tsv"
    path.write_text("".join("\t".join(triple) + "\n" for triple in triples), "utf-8")
    given = reasoner.on(KnowledgeGraph.from_triples(triples))
    assert given.graph.relations == reasoner.graph.relations
    assert answers_on(given, names[0]) == answers_on(reasoner.on(path), names[0])


def test_a_graph_with_a_relation_that_the_model_does_not_know_is_refused(
    reasoner: Reasoner,
) -> None:
    with pytest.raises(VocabularyError, match="relation names, got 'unheard of'"):
        reasoner.on(KnowledgeGraph.from_triples([("a", "unheard of", "b")]))


def test_a_run_is_loaded_onto_a_graph(
    tmp_path: Path, write_triples: Callable[[Path, Sequence[NamedTriple]], Path]
) -> None:
    names = [f"place{number}" for number in range(120)]  # enough facts to be calibrated on
    facts = [(name, "next", names[i - 1]) for i, name in enumerate(names)]
    facts += [(name, "skip", names[i - 2]) for i, name in enumerate(names)]
    config = CONFIG.model_copy(update={"training": TrainingConfig(max_epochs=1)})
    trained = train(write_triples(tmp_path / "ring.tsv", facts), tmp_path / "run", config=config)
    loaded = Reasoner.from_pretrained(tmp_path / "run", graph=trained.graph, threads=1)
    assert trained.calibration is not None
    assert loaded.calibration == trained.calibration
    question = {"head": "place7", "relation": "skip"}
    assert loaded.answer(**question) == trained.answer(**question)
    assert trained.on(trained.graph).calibration is trained.calibration


def test_another_dataset_is_evaluated_on_whatever_the_order_of_its_relations(
    reasoner: Reasoner, ring: Dataset
) -> None:
    relations = Vocabulary(reversed(ring.relations.names), kind="relation")
    turned = ring.with_relations(relations)
    assert turned.relations == relations
    report = reasoner.evaluate("test", graph=turned)
    assert report.realistic == reasoner.evaluate("test").realistic
    on_it = reasoner.on(turned)  # all its facts, as of a folder
    assert on_it.graph.same_as(ring.test.known_graph())


def test_scores_are_given_for_names_and_ids_and_repeat(reasoner: Reasoner) -> None:
    entities, relations = reasoner.graph.entities, reasoner.graph.relations
    heads, asked = list(entities.names[:3]), [relations.names[0]] * 3
    table = reasoner.score(heads, asked).dense()
    assert table.shape == (3, len(entities))
    assert not table.requires_grad
    ids = torch.tensor([entities.id(name) for name in heads])
    assert torch.equal(table, reasoner.score(ids, [0] * 3).dense())
    assert torch.equal(table[1:2], reasoner.score(heads[1:2], asked[1:2]).dense())
    best = reasoner.answer(head=heads[0], relation=asked[0], k=1).answers[0]
    assert table[0, entities.id(best.name)].item() == pytest.approx(best.score)
    # The inverse asks for heads.
    backwards = reasoner.score(heads[:1], [len(relations)]).dense()
    best = reasoner.answer(tail=heads[0], relation=asked[0], k=1).answers[0]
    assert backwards[0, entities.id(best.name)].item() == pytest.approx(best.score)
    assert reasoner.score([], []).dense().shape == (0, len(entities))
    with pytest.raises(ConfigError, match="3 heads and 1 relations"):
        reasoner.score(heads, asked[:1])
    with pytest.raises(VocabularyError, match="relation ids from 0 to 3, got 4"):
        reasoner.score(heads[:1], [4])


def test_what_if_answers_as_a_reasoner_with_those_facts_and_stores_nothing(
    reasoner: Reasoner,
) -> None:
    relation = reasoner.graph.relations.names[0]
    first, *_ = named_facts(reasoner.graph)
    new = ("place00", relation, "guest")
    asked = {"head": "place00", "relation": relation}
    compared = reasoner.what_if(**asked, without=[first], also=[new], k=3)
    changed = reasoner.on(reasoner.graph.with_facts([new], [first]))
    assert compared.before == reasoner.answer(**asked, k=3)
    assert compared.after == changed.answer(**asked, k=3)
    (guest,) = (m for m in reasoner.what_if(**asked, also=[new], k=99).moves if m.name == "guest")
    assert guest.rank_before is None
    assert guest.rank_after is not None
    assert "guest" not in reasoner.graph.entities
    with pytest.raises(DataError, match="Expected facts of the graph to remove"):
        reasoner.what_if(**asked, without=[(*new[:2], "place00")])
    with pytest.raises(ConfigError, match="facts to leave out or to add, got none"):
        reasoner.what_if(**asked)


def test_two_answers_to_one_question_are_compared(reasoner: Reasoner) -> None:
    relation = reasoner.graph.relations.names[0]
    tails = reasoner.compare(head="place00", relation=relation, first="place01", second="place05")
    answers = (tails.first.answer, tails.second.answer)
    assert (answers, tails.first.question()) == (("place01", "place05"), tails.second.question())
    heads = reasoner.compare(tail="place00", relation=relation, first="place01", second="place05")
    assert (heads.first.asks_for, heads.first.head, heads.first.tail) == (
        *("head", "place01", "place00"),
    )
    with pytest.raises(ConfigError, match="Expected two of head, relation and tail"):
        reasoner.compare(relation=relation, first="place01", second="place05")
