"""What must hold for the scores of any model on any graph; small random ones are drawn here."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from knowformer.graph.adjacency import Adjacency
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.kernels.interface import Edges, QueryView
from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.knowformer import KnowFormer, initialize
from knowformer.model.noise import identity_noise
from knowformer.scoring.scorer import Scorer

NUM_RELATIONS = 3

SETTINGS: list[dict[str, object]] = [
    PRESETS["released"],
    PRESETS["paper"],
    {"similarity": "exponential"},
    {"similarity": "random_features", "num_random_features": 8},
]


@dataclass(frozen=True)
class Case:
    """A graph, a model of either precision, and queries; all drawn from one seed."""

    graph: KnowledgeGraph
    config: ModelConfig
    seed: int
    heads: Tensor
    relations: Tensor

    def model(self) -> KnowFormer:
        model = KnowFormer(self.config, 2 * NUM_RELATIONS)
        initialize(model, generator=torch.Generator().manual_seed(self.seed))
        return model

    def scores(self, graph: KnowledgeGraph | None = None, heads: Tensor | None = None) -> Tensor:
        """Scores in double precision, so that what should agree does to many digits."""
        graph = graph or self.graph
        heads = self.heads if heads is None else heads
        scorer = Scorer(self.model().double(), graph, seed=self.seed)
        return scorer.score(heads, self.relations).dense()

    def scores_with(self, edges: Edges) -> Tensor:
        scores = self.model().double()(
            QueryView.whole(edges, self.heads),
            self.relations,
            identity_noise=identity_noise(self.config, self.graph.entity_keys, seed=self.seed),
        )
        return scores.view(len(self.heads), -1)


@dataclass(frozen=True)
class Drawn:
    """What hypothesis chooses; the case is built from it outside, as shape checks use random."""

    seed: int
    num_entities: int
    num_facts: int
    settings: dict[str, object]

    def build(self, build: Callable[..., KnowledgeGraph], num_queries: int = 4) -> Case:
        generator = torch.Generator().manual_seed(self.seed)
        small = {"hidden_dim": 16, "num_layers": 2, "num_heads": 4, "num_query_key_hops": 1}
        return Case(
            graph=build(
                self.seed,
                num_entities=self.num_entities,
                num_relations=NUM_RELATIONS,
                num_facts=self.num_facts,
            ),
            config=ModelConfig.model_validate(small | self.settings),
            seed=self.seed,
            heads=torch.randint(self.num_entities, (num_queries,), generator=generator),
            relations=torch.randint(2 * NUM_RELATIONS, (num_queries,), generator=generator),
        )


drawn_cases = st.builds(
    Drawn,
    seed=st.integers(0, 10**6),
    num_entities=st.integers(1, 12),
    num_facts=st.integers(0, 30),
    settings=st.sampled_from(SETTINGS),
)


@given(drawn=drawn_cases, data=st.data())
def test_renumbering_entities_permutes_the_scores(
    random_graph: Callable[..., KnowledgeGraph], drawn: Drawn, data: st.DataObject
) -> None:
    case = drawn.build(random_graph)
    names = case.graph.entities.names
    order = data.draw(st.permutations(range(len(names))))
    new_number = torch.empty(len(names), dtype=torch.long)
    new_number[torch.tensor(order)] = torch.arange(len(names))
    heads, relations, tails = case.graph.facts.unbind(1)
    renumbered = KnowledgeGraph(
        Vocabulary([names[old] for old in order], kind="entity"),
        case.graph.relations,
        torch.stack([new_number[heads], relations, new_number[tails]], 1),
    )
    scores = case.scores(renumbered, new_number[case.heads])
    torch.testing.assert_close(scores, case.scores()[:, torch.tensor(order)])


@given(drawn=drawn_cases, data=st.data())
def test_the_order_of_facts_is_irrelevant(
    random_graph: Callable[..., KnowledgeGraph], drawn: Drawn, data: st.DataObject
) -> None:
    case = drawn.build(random_graph)
    order = data.draw(st.permutations(range(len(case.graph.facts))))
    shuffled = KnowledgeGraph(
        case.graph.entities,
        case.graph.relations,
        case.graph.facts[torch.tensor(order, dtype=torch.long)],
    )
    assert torch.equal(case.scores(shuffled), case.scores())


@given(drawn=drawn_cases, data=st.data())
def test_hiding_edges_equals_a_graph_without_them(
    random_graph: Callable[..., KnowledgeGraph], drawn: Drawn, data: st.DataObject
) -> None:
    case = drawn.build(random_graph)
    facts, adjacency = case.graph.facts, case.graph.adjacency
    hidden = torch.tensor(
        data.draw(st.lists(st.booleans(), min_size=len(facts), max_size=len(facts))),
        dtype=torch.bool,
    )
    rebuilt = Adjacency(
        facts[~hidden], num_entities=adjacency.num_entities, num_relations=NUM_RELATIONS
    )
    masked = adjacency.edges.keep(adjacency.without_facts(facts[hidden]))
    torch.testing.assert_close(case.scores_with(masked), case.scores_with(rebuilt.edges))


@given(drawn=drawn_cases)
def test_scoring_twice_gives_equal_bits(
    random_graph: Callable[..., KnowledgeGraph], drawn: Drawn
) -> None:
    case = drawn.build(random_graph)
    first, second = (Scorer(case.model(), case.graph, seed=case.seed) for _ in range(2))
    scores = first.score(case.heads, case.relations).dense()
    assert torch.equal(scores, first.score(case.heads, case.relations).dense())
    assert torch.equal(scores, second.score(case.heads, case.relations).dense())


@given(drawn=drawn_cases)
def test_fused_kernels_agree_with_double_precision(
    random_graph: Callable[..., KnowledgeGraph], drawn: Drawn
) -> None:
    case = drawn.build(random_graph)
    scores = (
        Scorer(case.model(), case.graph, seed=case.seed).score(case.heads, case.relations).dense()
    )
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores.double(), case.scores(), rtol=1e-3, atol=1e-3)


@given(drawn=drawn_cases)
def test_which_queries_share_a_batch_does_not_change_a_bit(
    random_graph: Callable[..., KnowledgeGraph], drawn: Drawn
) -> None:
    case = drawn.build(random_graph, num_queries=6)
    scorer = Scorer(case.model(), case.graph, seed=case.seed)
    scores = scorer.score(case.heads, case.relations).dense()
    others = scorer.score(
        torch.cat([case.heads[:2], case.heads[2:].roll(1)]),
        torch.cat([case.relations[:2], (case.relations[2:] + 1) % (2 * NUM_RELATIONS)]),
    ).dense()
    assert torch.equal(scores[:2], others[:2])


@pytest.mark.parametrize("hidden_dim", [8, 32])
@given(drawn=drawn_cases, batch_size=st.sampled_from([1, 2, 3, 5]))
def test_the_size_of_the_batch_does_not_change_a_bit(
    random_graph: Callable[..., KnowledgeGraph],
    hidden_dim: int,
    drawn: Drawn,
    batch_size: int,
) -> None:
    case = drawn.build(random_graph, num_queries=8)
    model = KnowFormer(case.config.model_copy(update={"hidden_dim": hidden_dim}), 2 * NUM_RELATIONS)
    initialize(model, generator=torch.Generator().manual_seed(case.seed))
    scorer = Scorer(model, case.graph, seed=case.seed)
    together = scorer.score(case.heads, case.relations).dense()
    parts = zip(case.heads.split(batch_size), case.relations.split(batch_size), strict=True)
    apart = torch.cat([scorer.score(heads, relations).dense() for heads, relations in parts])
    assert torch.equal(apart, together)


@given(drawn=drawn_cases)
def test_the_same_query_twice_in_a_batch_gets_the_same_scores(
    random_graph: Callable[..., KnowledgeGraph], drawn: Drawn
) -> None:
    case = drawn.build(random_graph)
    scores = Scorer(case.model().double(), case.graph, seed=case.seed).score(
        case.heads[[0, 1, 0]], case.relations[[0, 1, 0]]
    )
    scores = scores.dense()
    torch.testing.assert_close(scores[0], scores[2])
