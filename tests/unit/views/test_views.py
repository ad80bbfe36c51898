"""Finding entities in views."""

import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.views.extractor import ViewExtractor
from knowformer.views.settings import ViewSettings


def test_rows_of_entities_are_found_in_their_own_query(family: KnowledgeGraph) -> None:
    settings = ViewSettings(size=3, prior_weight=0.0)
    extractor = ViewExtractor(family.adjacency, family.entity_keys, settings)
    everyone = torch.arange(len(family.entities))
    views = extractor.extract(everyone, torch.zeros_like(everyone))
    for query in everyone.tolist():
        start, stop = views.view.offsets[query : query + 2].tolist()
        seen = views.entities[start:stop].tolist()
        found = views.find(torch.full_like(everyone, query), everyone).tolist()
        assert found == [
            start + seen.index(entity) if entity in seen else -1 for entity in everyone.tolist()
        ]
    rows = torch.tensor([0, 5, 5])
    assert views.contains(rows, torch.tensor([0, 0, 5])).tolist() == [True, False, True]


def test_nothing_is_found_where_there_are_no_queries(family: KnowledgeGraph) -> None:
    extractor = ViewExtractor(family.adjacency, family.entity_keys, ViewSettings(size=3))
    none = torch.empty(0, dtype=torch.long)
    assert extractor.extract(none, none).contains(none, none).shape == (0,)
