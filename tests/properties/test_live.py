"""Whatever is changed in whatever order: a snapshot answers as a graph that is built anew."""

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowformer import KnowledgeGraph, ModelConfig, Reasoner, RunConfig
from knowformer.answering.results import Answers
from knowformer.data.dataset import Dataset
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import number_facts
from knowformer.graph.vocabulary import Vocabulary
from knowformer.live.facts import Change
from knowformer.live.snapshots import LiveGraph
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.runs.folder import Bundle
from knowformer.seeding import generator

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=2)

names = st.sampled_from([*(f"place{number:02d}" for number in range(6)), "guest", "host"])
actions = st.sampled_from(["add", "remove"])
changes = st.builds(Change, names, st.sampled_from(["next", "skip"]), names, actions)
requests = st.lists(st.lists(changes, min_size=1, max_size=4), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def reasoner(ring: Dataset) -> Reasoner:
    model = KnowFormer(SMALL, num_with_inverses(len(ring.relations)))
    initialize(model, generator=generator(0, "init"))
    config = RunConfig(model=SMALL, threads=1)
    bundle = Bundle(Path("run"), config, ring, model.eval(), "softmax")
    return Reasoner(bundle, ring.test.known_graph(), threads=1)


def every_answer(reasoner: Reasoner) -> list[Answers]:
    questions = [(name, "skip", None) for name in reasoner.graph.entities]
    return list(reasoner.answer_many(questions, k=99))


@settings(max_examples=10)
@given(requests=requests, asked=st.sets(st.integers(0, 3)))
def test_answers_have_the_bits_of_a_graph_built_anew_and_of_a_store_opened_again(
    reasoner: Reasoner, requests: list[list[Change]], asked: set[int]
) -> None:
    graph = reasoner.graph
    entities, relations = dict.fromkeys(graph.entities), graph.relations
    facts = dict.fromkeys(
        (graph.entities.names[h], relations.names[r], graph.entities.names[t])
        for h, r, t in graph.facts.tolist()
    )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "live.sqlite"
        with closing(LiveGraph.open(reasoner, path)) as live:
            for number, request in enumerate(requests):
                live.change(request)
                for change in request:
                    if change.action == "remove":
                        facts.pop(change.fact, None)
                    else:
                        facts.setdefault(change.fact)
                        entities |= {change.head: None, change.tail: None}
                if number in asked:  # then the next snapshot is made from its edges
                    every_answer(live.snapshot().reasoner)
            snapshot = live.snapshot()
        with closing(LiveGraph.open(reasoner, path)) as live:
            again = live.snapshot()
    vocabulary = Vocabulary(entities, kind="entity")
    anew = KnowledgeGraph(vocabulary, relations, number_facts(facts, vocabulary, relations))
    expected = every_answer(reasoner.on(anew))
    assert every_answer(snapshot.reasoner) == expected
    assert every_answer(again.reasoner) == expected
    assert again.version == snapshot.version
    assert snapshot.graph.same_as(anew)
    assert again.graph.same_as(anew)
