from collections import defaultdict
from collections.abc import Callable

import torch
from hypothesis import given
from hypothesis import strategies as st

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.known_answers import KnownAnswers


@given(seed=st.integers(0, 10**6), num_facts=st.integers(0, 60))
def test_known_answers_are_those_of_a_dictionary(
    random_graph: Callable[..., KnowledgeGraph], seed: int, num_facts: int
) -> None:
    graph = random_graph(seed, num_entities=7, num_facts=num_facts)
    num_relations = len(graph.relations)
    answers: dict[tuple[int, int], set[int]] = defaultdict(set)
    for head, relation, tail in graph.facts.tolist():
        answers[head, relation].add(tail)
        answers[tail, relation + num_relations].add(head)
    # Facts may repeat: a test fact may stand among the training facts too.
    known = KnownAnswers(
        torch.cat([graph.facts, graph.facts[:3]]), num_entities=7, num_relations=num_relations
    )
    queries = torch.cartesian_prod(torch.arange(7), torch.arange(2 * num_relations))
    queries = queries[torch.randperm(len(queries), generator=torch.Generator().manual_seed(seed))]
    heads, relations = queries.unbind(1)

    rows, tails = known.lookup(heads, relations)
    found = list(zip(rows.tolist(), tails.tolist(), strict=True))
    assert found == [
        (row, tail)
        for row, (head, relation) in enumerate(queries.tolist())
        for tail in sorted(answers[head, relation])
    ]
    mask = known.mask(heads, relations)
    assert mask.shape == (len(queries), 7)
    assert mask.nonzero().tolist() == [list(pair) for pair in found]


def test_no_queries_have_no_answers(family: KnowledgeGraph) -> None:
    known = KnownAnswers(family.facts, num_entities=6, num_relations=len(family.relations))
    none = torch.empty(0, dtype=torch.long)
    assert known.mask(none, none).shape == (0, 6)
