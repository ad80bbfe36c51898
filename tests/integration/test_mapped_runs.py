"""A graph that stays on disk trains and answers to the bit as the same graph in memory."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.importing import import_files
from knowformer.importing.importing import ImportOptions
from knowformer.live.snapshots import STORE_FILE, LiveGraph
from knowformer.pipeline import train
from knowformer.reasoner import Reasoner
from knowformer.server.names import Names
from knowformer.storage.triples_io import NamedTriple

SETTINGS = {
    "model.hidden_dim": 16,
    "model.num_layers": 1,
    "model.view_size": 9,
    "training.batch_size": 8,
    "training.max_epochs": 1,
    "training.hide": "facts",
    "threads": 1,
}


@pytest.fixture
def runs(
    tmp_path: Path,
    random_graph: Callable[..., KnowledgeGraph],
    write_triples: Callable[[Path, Sequence[NamedTriple]], Path],
) -> dict[bool, Path]:
    graph = random_graph(5, num_entities=25, num_facts=120)
    name, relation = graph.entities.name, graph.relations.name
    triples = [(name(h), relation(r), name(t)) for h, r, t in graph.facts.tolist()]
    facts = write_triples(tmp_path / "facts.tsv", triples)
    folders: dict[bool, Path] = {}
    for mapped in (False, True):
        data, run = tmp_path / f"data_{mapped}", tmp_path / f"run_{mapped}"
        import_files(facts, data, options=ImportOptions(mapped=mapped))
        assert (data / "train.txt").exists() != mapped
        train(data, run, settings=SETTINGS)
        folders[mapped] = run
    return folders


def test_weights_and_answers_are_the_same(runs: dict[bool, Path]) -> None:
    text, mapped = (Reasoner.from_pretrained(runs[kind], threads=1) for kind in (False, True))
    for name, weights in text.model.state_dict().items():
        assert torch.equal(mapped.model.state_dict()[name], weights)
    entities, relation = text.graph.entities.names, text.graph.relations.names[0]
    assert list(mapped.graph.entities) == list(entities)
    for head in entities[:4]:
        one, other = (
            reasoner.answer(head=head, relation=relation, typical=True)
            for reasoner in (text, mapped)
        )
        assert one == other
    assert mapped.evaluate().realistic == text.evaluate().realistic
    assert mapped.graph_fingerprint() == text.graph_fingerprint()


def test_a_store_of_changes_fits_both(runs: dict[bool, Path]) -> None:
    mapped = Reasoner.from_pretrained(runs[True], threads=1)
    live = LiveGraph.open(mapped, runs[True] / STORE_FILE)
    names = Names(live.snapshot())
    found = [match.name for match in names.entities(live.snapshot(), "e1", 3)]
    assert found[0] == "e1"
    live.close()
    text = Reasoner.from_pretrained(runs[False], threads=1)
    LiveGraph.open(text, runs[True] / STORE_FILE).close()
