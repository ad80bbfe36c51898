"""What answers attend to, counted again by hand on small graphs."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench import RING, SHIPPED, TINY, Bench, WriteExperiment
from knowformer.data.dataset import Dataset
from knowformer.data.labels import Labels
from knowformer.data.loading import load_dataset
from knowformer.errors import ConfigError, VocabularyError
from knowformer.evaluation.evaluate import rank_split
from knowformer.explanation.explainer import Explainer
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.scoring.scorer import Scorer
from knowformer.storage.triples_io import NamedTriple
from knowformer_lab.experiment import AskedQuestion, load_experiments
from knowformer_lab.report.attention_section import readable
from knowformer_lab.report.page import write_report
from knowformer_lab.studies.attention import (
    NUM_EQUALS,
    AttentionStudy,
    Named,
    find_questions,
    measure_attention,
)

SPLITS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def kinship() -> Dataset:
    return load_dataset("kinship")


def build(dataset: Dataset, **settings: object) -> KnowFormer:
    small = {"hidden_dim": 8, "num_layers": 2, "num_heads": 2, "num_value_hops": 2, **settings}
    model = KnowFormer(ModelConfig.model_validate(small), 2 * len(dataset.relations))
    initialize(model, generator=torch.Generator().manual_seed(0))
    return model.eval()


def names_of(dataset: Dataset, split: str) -> list[NamedTriple]:
    """The facts of a split's file."""
    entities, relations = dataset.train.graph.entities.names, dataset.relations.names
    facts = dataset.train.graph.facts if split == "train" else dataset.split(split).facts
    return [(entities[h], relations[r], entities[t]) for h, r, t in facts.tolist()]


def asked_most(dataset: Dataset, count: int = 1) -> list[AskedQuestion]:
    """The questions with the most test facts."""
    pairs = [(head, relation) for head, relation, _ in names_of(dataset, "test")]
    most = sorted(set(pairs), key=lambda pair: (-pairs.count(pair), pair))[:count]
    return [AskedQuestion(head=head, relation=relation) for head, relation in most]


def test_shares_and_chance_are_what_counting_by_hand_gives(kinship: Dataset) -> None:
    (asked,) = asked_most(kinship)
    (study,) = measure_attention(build(kinship), kinship, [asked], seed=0).questions
    known = [fact for split in SPLITS for fact in names_of(kinship, split)]
    answers = {t for h, r, t in known if (h, r) == (asked.head, asked.relation)}
    tails = {t for _, r, t in known if r == asked.relation}
    first = study.answers[0]
    chosen = [entry.entity for entry in study.attended]
    assert len(chosen) == 10
    assert first.entity not in chosen
    assert first.attention.found.answers == pytest.approx(len(answers & {*chosen}) / 10)
    assert first.attention.found.tails == pytest.approx(len(tails & {*chosen}) / 10)
    assert {entry.entity: entry.kin for entry in study.attended} == {
        name: "answer" if name in answers else "tail" if name in tails else "none"
        for name in chosen
    }
    train = names_of(kinship, "train")
    ends = [name for h, _, t in train for name in (h, t)]
    degree = {name: ends.count(name) for name in kinship.test.graph.entities}
    expected = 0.0
    for name in chosen:
        others = [w for w in degree if w not in (name, first.entity)]
        apart = sorted(abs(degree[w] - degree[name]) for w in others)[NUM_EQUALS - 1]
        equals = [w for w in others if abs(degree[w] - degree[name]) <= apart]
        expected += sum(w in tails for w in equals) / len(equals) / len(chosen)
    assert first.attention.chance.tails == pytest.approx(expected)
    rest = [w for w in degree if w != first.entity]
    assert study.everyone.answers == pytest.approx(sum(w in answers for w in rest) / len(rest))


def test_ranks_are_those_of_the_evaluation_and_best_answers_are_new(kinship: Dataset) -> None:
    model, (asked,) = build(kinship), asked_most(kinship)
    (study,) = measure_attention(model, kinship, [asked], seed=0).questions
    head = kinship.test.graph.entities.id(asked.head)
    # Facts of that head alone: enough, and quick.
    split = replace(kinship.test, facts=kinship.test.facts[kinship.test.facts[:, 0] == head])
    ranks, directed, _ = rank_split(Scorer(model, split.graph, seed=0), split)
    expected = {
        split.graph.entities.names[t]: rank
        for (h, r, t), rank in zip(directed.tolist(), ranks.realistic.tolist(), strict=True)
        if h == head and r == kinship.relations.id(asked.relation)
    }
    assert {answer.entity: answer.rank for answer in study.answers} == expected
    assert [answer.rank for answer in study.answers] == sorted(expected.values())
    train = set(names_of(kinship, "train"))
    truth = {split: set(names_of(kinship, split)) for split in ("valid", "test")}
    for candidate in study.best:
        fact = (asked.head, asked.relation, candidate.entity)
        assert fact not in train
        assert (candidate.truth == "test") == (fact in truth["test"])
        assert (candidate.truth == "known") == (fact in truth["valid"])
    assert [c.score for c in study.best] == sorted((c.score for c in study.best), reverse=True)


def test_attended_entities_are_those_of_an_explanation(kinship: Dataset) -> None:
    model, (asked,) = build(kinship), asked_most(kinship)
    (study,) = measure_attention(model, kinship, [asked], seed=0).questions
    split = kinship.test
    finder = EvidenceFinder.on_split(model, split, seed=0)
    answer = study.answers[0].entity
    explanation = Explainer(finder, labels=Labels(), seed=0).explain(
        asked.head, asked.relation, answer
    )
    for found, explained in (
        (study.attended, [(e.entity, e.attention) for e in explanation.attended]),
        (study.influential, [(e.entity, e.influence) for e in explanation.prototypes]),
    ):
        assert [entry.entity for entry in found] == [name for name, _ in explained]
        assert [e.value for e in found] == pytest.approx([value for _, value in explained])
    layers = [
        {
            entry.entity
            for head in explanation.heads
            if head.layer == layer
            for entry in head.entities
        }
        for layer in (1, 2)
    ]
    assert len(study.attended_by_layer) == 2
    for named, in_heads in zip(study.attended_by_layer, layers, strict=True):
        assert len(named) == 10
        assert {entry.entity for entry in named} & in_heads


def test_progress_counts_answers_and_a_study_repeats(kinship: Dataset) -> None:
    questions, seen = asked_most(kinship, 2), []
    model = build(kinship)
    study = measure_attention(
        model, kinship, questions, seed=0, progress=lambda done, of: seen.append((done, of))
    )
    total = sum(len(question.answers) for question in study.questions)
    assert seen == [(number, total) for number in range(1, total + 1)]
    assert measure_attention(model, kinship, questions, seed=0) == study
    assert AttentionStudy.model_validate(study.model_dump(mode="json")) == study


def test_what_cannot_be_studied_is_refused(kinship: Dataset) -> None:
    (asked,) = asked_most(kinship)
    with pytest.raises(ConfigError, match="with attention"):
        measure_attention(build(kinship, attention=False), kinship, [asked], seed=0)
    with pytest.raises(VocabularyError, match="nobody"):
        find_questions(kinship, [AskedQuestion(head="nobody", relation=asked.relation)])
    test = {(h, r) for h, r, _ in names_of(kinship, "test")}
    head = next(e for e in kinship.test.graph.entities if (e, asked.relation) not in test)
    with pytest.raises(ConfigError, match="which has none"):
        find_questions(kinship, [AskedQuestion(head=head, relation=asked.relation)])


def test_a_name_for_people_has_no_identifier_unless_two_share_it() -> None:
    assert readable(Named(entity="/m/0f4kp", label="Vitamin B6 (Q205130)")) == "Vitamin B6"
    assert (
        readable(Named(entity="/m/014d7f", label="University of York (/m/014d7f)")) == "/m/014d7f"
    )
    assert readable(Named(entity="/m/0pqp3", label="Camel (band) (Q612471)")) == "Camel (band)"
    assert readable(Named(entity="vitamin", label="vitamin")) == "vitamin"


def test_a_misspelt_question_is_told_before_training(
    experiments_folder: Path, write_experiment: WriteExperiment
) -> None:
    question = '[[study.questions]]\nhead = "palace01"\nrelation = "next"\n'
    write_experiment("attention/bad", f'kind = "attention"\ndataset = "{RING}"\n{question}{TINY}')
    bench = Bench(experiments_folder)
    (outcome,) = bench.run("attention/bad")
    assert outcome.state == "failed"
    assert "place01" in str(outcome.error)
    assert not list((experiments_folder.parent / "runs").glob("ring*"))


def test_an_experiment_shares_a_training_and_is_reported(
    bench: Bench, write_experiment: WriteExperiment
) -> None:
    (asked,) = asked_most(load_dataset(RING, seed=0))
    question = f'[[study.questions]]\nhead = "{asked.head}"\nrelation = "{asked.relation}"\n'
    write_experiment(
        "attention/one", f'kind = "attention"\nlike = "inductive/one"\nseeds = [0]\n{question}'
    )
    bench = Bench(bench.folder)
    states = [outcome.state for outcome in bench.run("inductive/one", "attention/one")]
    assert states == ["done"] * 3
    runs = [path for path in (bench.folder.parent / "runs").iterdir() if path.is_dir()]
    assert len(runs) == 2  # one per seed of the ranking; the study has none of its own
    result = bench.store.read(bench.experiments["attention/one"], 0)
    assert result is not None
    study = AttentionStudy.model_validate(result.study)
    (question,) = study.questions
    text = write_report(bench.experiments, bench.store, bench.folder).read_text("utf-8")
    assert (bench.folder / "pictures" / "attention.png").is_file()
    best, share = question.answers[0], question.answers[0].attention.found.tails
    assert f"({asked.head}, {asked.relation}, ?)](results/attention/one) | 1 | **" in text
    assert f"| {best.entity}, {best.rank:g} |" in text
    assert f"the share of tails is {100 * share:.0f}%, against" in text


@pytest.mark.dataset
@pytest.mark.skipif("KNOWFORMER_DATA" not in os.environ, reason="needs $KNOWFORMER_DATA")
def test_the_papers_questions_have_test_facts_in_fb15k_237() -> None:
    experiment = load_experiments(SHIPPED)["attention/fb15k-237"]
    dataset = load_dataset("fb15k-237")
    found = find_questions(dataset, experiment.study.questions)
    assert len(found) == 5
    heads = [dataset.labels.entity(question.asked.head) for question in found]
    assert [name.split(" (")[0] for name in heads[:4]] == [
        "Decca Records",
        "Egg as food",
        "Jews",
        "Piano",
    ]
