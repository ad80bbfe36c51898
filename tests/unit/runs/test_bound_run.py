"""Reasoners that see more facts, and reasoners that are pickled."""

import pickle
from pathlib import Path

import pytest
import torch

from knowformer import Dataset, Reasoner, train
from knowformer.data.labels import Labels
from knowformer.errors import BundleError, VocabularyError

TINY = {
    "model.hidden_dim": 16,
    "model.num_layers": 1,
    "model.num_value_hops": 1,
    "training.max_epochs": 0.1,
    "threads": 1,
}


@pytest.fixture(scope="module")
def run(ring: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bound") / "run"
    train(ring, folder, settings=TINY, calibrate=False)
    return folder


def test_added_facts_are_seen_and_known_beside_those_that_were(run: Path) -> None:
    for evidence in ("all", "train"):
        reasoner = Reasoner.from_pretrained(run, evidence=evidence, threads=1)
        known = reasoner.answer(head="place00", relation="next").num_known
        grown = reasoner.add_facts([("place00", "next", "guest")])
        answers = grown.answer(head="place00", relation="next", k=99)
        assert answers.num_known == known + 1
        assert {answer.name for answer in answers.answers if answer.known} >= {"guest"}
        assert len(grown.graph.facts) == len(reasoner.graph.facts) + 1
        assert "guest" not in reasoner.graph.entities


def test_added_facts_may_be_in_readable_names_but_relations_must_be_known(run: Path) -> None:
    reasoner = Reasoner.from_pretrained(run, threads=1)
    reasoner.labels = Labels({"place03": "Rome"}, {"next": "is followed by"})
    grown = reasoner.add_facts([("Rome", "is followed by", "place09")])
    assert grown.graph.same_as(reasoner.graph.with_facts([("place03", "next", "place09")]))
    with pytest.raises(VocabularyError, match=r"'nxt'.*Did you mean 'next'"):
        reasoner.add_facts([("place00", "nxt", "place01")])


def test_a_pickled_reasoner_gives_the_same_answers_and_holds_no_weights(run: Path) -> None:
    reasoner = Reasoner.from_pretrained(run, evidence="train", threads=1)
    grown = reasoner.add_facts([("place00", "next", "guest")])
    stored = pickle.dumps(grown)
    assert len(stored) < (run / "model.safetensors").stat().st_size
    again = pickle.loads(stored)
    for head in ("place00", "guest"):
        assert again.answer(head=head, relation="skip") == grown.answer(head=head, relation="skip")


def test_weights_other_than_the_runs_are_not_pickled_and_not_taken_for_them(
    ring: Dataset, tmp_path: Path
) -> None:
    reasoner = train(ring, tmp_path / "run", settings=TINY, calibrate=False)
    stored = pickle.dumps(reasoner)
    with torch.no_grad():
        reasoner.model.score_last.bias += 1.0
    with pytest.raises(BundleError, match="found others in its model"):
        pickle.dumps(reasoner)
    (tmp_path / "run").rename(tmp_path / "old")
    train(ring, tmp_path / "run", settings=TINY | {"seed": 1}, calibrate=False)
    with pytest.raises(BundleError, match="pickled with, found others"):
        pickle.loads(stored)
