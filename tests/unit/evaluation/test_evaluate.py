"""Walking a split: every fact both ways, each query scored once, a report that says how."""

import json

import pytest
import torch

from knowformer.calibration.calibration import COEFFICIENTS, Calibration, Curve, FittedOn
from knowformer.data.dataset import Dataset, Split
from knowformer.errors import KnowformerError
from knowformer.evaluation.evaluate import evaluate, rank_split
from knowformer.evaluation.link_prediction import auroc, unlinked_pairs
from knowformer.evaluation.metrics import rank_metrics
from knowformer.evaluation.ranked_facts import RankedFacts
from knowformer.graph.inverse import num_with_inverses
from knowformer.graph.knowledge_graph import KnowledgeGraph, number_facts
from knowformer.model.config import ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.queries.scores import Scores
from knowformer.scoring.scorer import Scorer

TRAIN = [
    ("ann", "parent_of", "ben"),
    ("ann", "parent_of", "cat"),
    ("ann", "parent_of", "fay"),
    ("ben", "parent_of", "dan"),
    ("ben", "parent_of", "hal"),
    ("ben", "married_to", "eve"),
    ("eve", "parent_of", "dan"),
    ("fay", "parent_of", "eve"),
]
VALID = [("cat", "married_to", "gus")]
TEST = [
    ("eve", "parent_of", "fin"),
    ("eve", "parent_of", "gil"),
    ("ben", "parent_of", "fin"),
    ("eve", "married_to", "ben"),
]


def make_dataset() -> Dataset:
    names = [name for head, _, tail in [*VALID, *TEST] for name in (head, tail)]
    graph = KnowledgeGraph.from_triples(TRAIN, more_entities=names)
    valid = number_facts(VALID, graph.entities, graph.relations)
    test = number_facts(TEST, graph.entities, graph.relations)
    known = torch.cat([graph.facts, valid, test])
    return Dataset(
        "family",
        train=Split("train", graph, graph.facts, known),
        valid=Split("valid", graph, valid, known),
        test=Split("test", graph, test, known),
    )


def make_model(num_relations: int) -> KnowFormer:
    config = ModelConfig(hidden_dim=8, num_heads=2, num_layers=1)
    model = KnowFormer(config, num_with_inverses(num_relations))
    initialize(model, generator=torch.Generator().manual_seed(3))
    return model.eval()


class RecordingScorer(Scorer):
    """The real scorer, with a record of the queries that it was asked."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__(make_model(len(graph.relations)), graph, seed=0)
        self.asked: list[tuple[int, int]] = []

    def score(
        self, heads: torch.Tensor, relations: torch.Tensor, *, outside: bool = False
    ) -> Scores:
        self.asked += zip(heads.tolist(), relations.tolist(), strict=True)
        return super().score(heads, relations, outside=outside)


def test_a_sample_of_the_facts_is_said_to_be_one_and_keeps_the_whole_filter():
    dataset = make_dataset()
    model = make_model(len(dataset.relations))
    whole = evaluate(model, dataset)
    sampled = evaluate(model, dataset, num_facts=2)
    assert (sampled.protocol.num_facts, sampled.protocol.sampled_from) == (2, 4)
    assert "2 of 4 facts" in sampled.table().title
    assert sampled.facts is not None
    assert whole.facts is not None
    rows = {tuple(fact): rank for fact, rank in zip(*_ranked(whole.facts), strict=True)}
    assert [rows[tuple(fact)] for fact in _ranked(sampled.facts)[0]] == _ranked(sampled.facts)[1]
    assert evaluate(model, dataset, num_facts=9).protocol.sampled_from is None


def test_probabilities_are_measured_on_all_facts_where_a_sample_is_ranked():
    """Other true answers of the sample's questions would count as wrong."""
    dataset = make_dataset()
    model = make_model(len(dataset.relations))
    fitted_on = FittedOn(
        facts=1, questions=2, candidates=9, sampled_from=2, test_facts_among_candidates=0, seed=0
    )
    calibration = Calibration(
        link="sigmoid",
        coefficients=dict.fromkeys(COEFFICIENTS, 0.0),
        pooled=Curve(kind="line"),
        log_loss={},
        fitted_on=fitted_on,
    )
    whole = evaluate(model, dataset, calibration=calibration).calibration
    sampled = evaluate(model, dataset, calibration=calibration, num_facts=1).calibration
    assert whole is not None
    assert whole.num_true > 2  # that one fact, asked both ways, is but a part of them
    assert sampled == whole


def _ranked(facts: RankedFacts) -> tuple[list[list[int]], list[float]]:
    return facts.directed.tolist(), facts.ranks.realistic.tolist()


@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_queries_that_share_head_and_relation_are_scored_once(batch_size: int):
    split = make_dataset().test
    scorer = RecordingScorer(split.graph)
    ranks, directed, num_queries = rank_split(scorer, split, batch_size=batch_size)
    # Tails: eve parent_of (2 facts), ben parent_of, eve married_to; heads: fin (2 facts), gil, ben.
    assert num_queries == len(scorer.asked) == len(set(scorer.asked)) == 6
    assert set(scorer.asked) == {(head, relation) for head, relation, _ in directed.tolist()}
    assert len(ranks.optimistic) == 8


def test_every_fact_is_ranked_forwards_and_backwards():
    split = make_dataset().test
    _, directed, _ = rank_split(RecordingScorer(split.graph), split)
    parent_of, married_to = (split.graph.relations.id(r) for r in ("parent_of", "married_to"))
    inverse = {parent_of: parent_of + 2, married_to: married_to + 2}
    forwards = [tuple(fact) for fact in split.facts.tolist()]
    backwards = [(tail, inverse[relation], head) for head, relation, tail in forwards]
    assert [tuple(fact) for fact in directed.tolist()] == forwards + backwards


def test_ranks_are_those_of_each_fact_alone():
    """Sharing a pass and a batch must not mix up which rank belongs to which fact."""
    dataset = make_dataset()
    split, graph = dataset.test, dataset.test.graph
    scorer = Scorer(make_model(len(graph.relations)), graph, seed=0)
    ranks, directed, _ = rank_split(scorer, split, batch_size=3)
    num_relations = len(graph.relations)
    known = {tuple(fact) for fact in split.known.tolist()}
    known |= {(t, (r + num_relations) % (2 * num_relations), h) for h, r, t in known}
    for number, (head, relation, tail) in enumerate(directed.tolist()):
        row = scorer.score(torch.tensor([head]), torch.tensor([relation])).dense()[0].tolist()
        others = [
            score
            for entity, score in enumerate(row)
            if entity != tail and (head, relation, entity) not in known
        ]
        assert ranks.optimistic[number] == 1 + sum(score > row[tail] for score in others)
        assert ranks.pessimistic[number] == 1 + sum(score >= row[tail] for score in others)


def test_the_batch_size_changes_no_rank():
    split = make_dataset().test
    scorer = Scorer(make_model(len(split.graph.relations)), split.graph, seed=0)
    one, *others = (rank_split(scorer, split, batch_size=size)[0] for size in (1, 3, 64))
    for other in others:
        assert torch.equal(one.optimistic, other.optimistic)
        assert torch.equal(one.pessimistic, other.pessimistic)


def test_progress_ends_with_all_facts_done():
    split = make_dataset().test
    seen: list[tuple[int, int]] = []
    rank_split(
        RecordingScorer(split.graph), split, batch_size=2, progress=lambda *at: seen.append(at)
    )
    assert len(seen) == 3
    assert seen[-1] == (8, 8)
    assert sorted(seen) == seen


def test_weights_that_are_not_finite_are_refused():
    dataset = make_dataset()
    model = make_model(len(dataset.relations))
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    with pytest.raises(KnowformerError, match="finite scores"):
        evaluate(model, dataset, "test", seed=0)


def test_sides_are_those_asked_for_and_together_they_are_the_whole():
    dataset = make_dataset()
    model = make_model(len(dataset.relations))
    report = evaluate(model, dataset, "test", seed=0)
    ranks, _, _ = rank_split(Scorer(model, dataset.test.graph, seed=0), dataset.test)
    first_half = torch.arange(8) < 4  # facts as they are ask for tails; their inverses follow
    assert report.tail["realistic"] == rank_metrics(ranks[first_half].realistic)
    assert report.head["realistic"] == rank_metrics(ranks[~first_half].realistic)
    assert report.head != report.tail
    for policy in ("realistic", "optimistic", "pessimistic"):
        overall = getattr(report, policy)
        for name, value in overall.items():
            sides = (report.head[policy][name] + report.tail[policy][name]) / 2
            assert value == pytest.approx(sides, abs=1e-12)
    assert report.mrr == report.realistic["mrr"]


def test_categories_partition_the_facts_and_match_their_ranks():
    dataset = make_dataset()
    model = make_model(len(dataset.relations))
    report = evaluate(model, dataset, "test", seed=0)
    # parent_of has 7 facts of 4 heads and of 6 tails; married_to has a single one.
    numbers = {name: row["num_facts"] for name, row in report.categories.items()}
    assert numbers == {"1-1": 1, "1-n": 3, "n-1": 0, "n-n": 0}
    # The one married_to fact: its category's figures are those of its two ranks.
    ranks, _, _ = rank_split(Scorer(model, dataset.test.graph, seed=0), dataset.test)
    last = torch.tensor([False, False, False, True])
    nothing = torch.zeros(4, dtype=torch.bool)
    tail, head = ranks[torch.cat([last, nothing])], ranks[torch.cat([nothing, last])]
    assert report.categories["1-1"]["tail"] == rank_metrics(tail.realistic)
    assert report.categories["1-1"]["head"] == rank_metrics(head.realistic)


def test_the_protocol_says_what_was_done():
    dataset = make_dataset()
    report = evaluate(make_model(len(dataset.relations)), dataset, "test", seed=7)
    protocol = report.protocol
    assert protocol.dataset == "family"
    assert protocol.split == "test"
    assert protocol.setting == "transductive"
    assert (protocol.num_facts, protocol.num_queries, protocol.num_candidates) == (4, 6, 10)
    assert protocol.filter.endswith("train + valid + test")
    assert "both" in protocol.directions
    assert "realistic" in protocol.headline
    assert "seed 7" in protocol.noise


def test_the_protocol_of_validation_names_the_filter_that_was_used():
    """Reports filter validation by test facts too; the protocol must not claim otherwise."""
    dataset = make_dataset()
    report = evaluate(make_model(len(dataset.relations)), dataset, "valid", seed=0)
    assert len(dataset.valid.known) == len(TRAIN) + len(VALID) + len(TEST)
    assert report.protocol.filter.endswith(": train + valid + test")


def make_inductive() -> Dataset:
    seen = KnowledgeGraph.from_triples(TRAIN, more_entities=["gus"])
    valid = number_facts(VALID, seen.entities, seen.relations)
    known = torch.cat([seen.facts, valid])
    unseen = KnowledgeGraph.from_triples(
        [("xia", "parent_of", "yan"), ("yan", "married_to", "zoe")],
        relations=seen.relations,
    )
    asked = number_facts([("xia", "parent_of", "zoe")], unseen.entities, unseen.relations)
    return Dataset(
        "apart",
        train=Split("train", seen, seen.facts, known),
        valid=Split("valid", seen, valid, known),
        test=Split("test", unseen, asked, torch.cat([unseen.facts, asked])),
    )


def test_a_test_graph_of_its_own_is_reported_as_inductive():
    dataset = make_inductive()
    model = make_model(len(dataset.relations))
    test = evaluate(model, dataset, "test", seed=0).protocol
    assert test.setting.startswith("inductive")
    assert test.num_candidates == 3
    assert test.filter.endswith(": train + valid + test")
    valid = evaluate(model, dataset, "valid", seed=0).protocol
    assert valid.setting == "transductive"
    assert valid.filter.endswith(": train + valid")


def test_a_data_set_that_the_model_was_not_trained_on_is_reported_as_inductive():
    dataset, trained_on = make_dataset(), make_inductive().train.graph
    model = make_model(len(dataset.relations))
    report = evaluate(model, dataset, "test", seed=0, trained_on=trained_on)
    assert report.protocol.setting.startswith("inductive")
    same = evaluate(model, dataset, "test", seed=0, trained_on=make_dataset().train.graph)
    assert same.protocol.setting == "transductive"


def test_a_report_survives_json():
    dataset = make_dataset()
    report = evaluate(make_model(len(dataset.relations)), dataset, "test", seed=0)
    content = json.loads(json.dumps(report.model_dump(mode="json"), allow_nan=False))
    assert type(report).model_validate(content) == report.model_copy(update={"facts": None})


def test_a_report_keeps_the_command_that_it_is_given_and_reads_none_itself():
    dataset = make_dataset()
    model = make_model(len(dataset.relations))
    assert evaluate(model, dataset, "test", seed=0).command is None
    assert evaluate(model, dataset, "test", seed=0, command="as typed").command == "as typed"


def test_a_split_that_does_not_exist_is_refused():
    dataset = make_dataset()
    with pytest.raises(KnowformerError, match="train, valid, test"):
        evaluate(make_model(len(dataset.relations)), dataset, "tset", seed=0)


def test_scoring_twice_gives_equal_bits_and_another_seed_gives_others():
    graph = make_dataset().test.graph
    model = make_model(len(graph.relations))
    heads, relations = torch.tensor([0, 3]), torch.tensor([0, 1])
    first = Scorer(model, graph, seed=0).score(heads, relations).dense()
    assert torch.equal(first, Scorer(model, graph, seed=0).score(heads, relations).dense())
    assert not torch.equal(first, Scorer(model, graph, seed=1).score(heads, relations).dense())


def test_links_of_one_kind_are_scored_from_both_ends() -> None:
    pairs = [(f"n{i}", "linked_to", f"n{j}") for i in range(9) for j in range(i + 1, 9, 3)]
    graph = KnowledgeGraph.from_triples(pairs)
    split = Split("test", graph, graph.facts[:6], graph.facts)
    dataset = Dataset("links", split, split, split)
    model = make_model(1)
    report = evaluate(model, dataset, seed=0)
    scorer = Scorer(model, graph, seed=0)
    heads, tails = graph.facts[:6, 0], graph.facts[:6, 2]
    there = scorer.score(heads, torch.zeros_like(heads)).dense()
    back = scorer.score(tails, torch.ones_like(heads)).dense()
    rows = torch.arange(6)
    positives = (there[rows, tails] + back[rows, heads]) / 2
    negatives = unlinked_pairs(split, seed=0)
    heads, tails = negatives[:, 0], negatives[:, 2]
    there = scorer.score(heads, torch.zeros_like(heads)).dense()
    back = scorer.score(tails, torch.ones_like(heads)).dense()
    rows = torch.arange(len(negatives))
    expected = auroc(positives, (there[rows, tails] + back[rows, heads]) / 2)
    assert report.link_prediction is not None
    assert report.link_prediction["auroc"] == pytest.approx(expected)
