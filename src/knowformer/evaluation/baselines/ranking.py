"""Ranks of a split's facts under the baselines, by the same protocol as a model's.

Popularity is a rule of no step: rules rank an entity by it and by all other rules that lead there.
No table of all entities is made, since only what rules reach has more than its popularity.
"""

from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int

from knowformer.data.dataset import Split
from knowformer.evaluation.baselines.matches import find_matches
from knowformer.evaluation.baselines.popularity import Popularity
from knowformer.evaluation.baselines.rules import Rules, learn_rules
from knowformer.evaluation.baselines.tally import Tally
from knowformer.evaluation.ranks import Ranks
from knowformer.graph.inverse import with_inverse_facts
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.batches import evaluation_batches
from knowformer.queries.known_answers import KnownAnswers
from knowformer.queries.query import QueryBatch

Baseline = Literal["rules", "popularity"]
BASELINES: dict[Baseline, str] = {"rules": "two-hop rules", "popularity": "popularity"}
"""What each is called where people read it."""

QUERIES_AT_ONCE = 128

Counts = Int[np.ndarray, "2 F"]
"""Candidates above each answer, and candidates equal to it."""


def rank_baselines(split: Split, *, trained_on: KnowledgeGraph) -> dict[Baseline, Ranks]:
    """Ranks every fact of a split in both directions, in the order of ``rank_split``.

    Args:
        split: its graph gives popularity, and the edges that rules follow.
        trained_on: the graph that rules are learnt from, with the relations of the split's.
    """
    num_relations = len(split.graph.relations)
    ranker = _Ranker(split, learn_rules(trained_on))
    directed = with_inverse_facts(split.facts, num_relations)
    counts = np.zeros((len(BASELINES), 2, len(directed)))
    for batch, positions in evaluation_batches(directed, num_relations, QUERIES_AT_ONCE):
        counts[:, :, positions.numpy()] = ranker.count(batch)
    is_seen = torch.ones(len(directed), dtype=torch.bool)
    return {
        name: Ranks(torch.from_numpy(1 + above), torch.from_numpy(1 + above + equal), is_seen)
        for name, (above, equal) in zip(BASELINES, counts, strict=True)
    }


class _Ranker:
    """Popularity and rules on the graph of a split."""

    def __init__(self, split: Split, rules: Rules) -> None:
        graph = split.graph
        self._rules = rules
        self._edges = graph.adjacency
        self._popularity = Popularity(graph)
        # Every answer is known: as one of those that do not compete it is left out of the counts.
        sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
        none, facts = split.facts[:0], torch.unique(split.facts, dim=0)
        self._known = KnownAnswers.of_split(split).changed(added=facts, removed=none, **sizes)

    def count(self, batch: QueryBatch) -> tuple[Counts, Counts]:
        """Returns what is above and equal to every answer, by rules and by popularity."""
        heads, relations = batch.heads.numpy(), batch.relations.numpy()
        rows, tails = batch.rows.numpy(), batch.tails.numpy()
        known = [ids.numpy() for ids in self._known.lookup(batch.heads, batch.relations)]
        known_popular = Tally(known[0], self._popularity.of(relations[known[0]], known[1]))

        def others(value: Float[np.ndarray, " F"]) -> Counts:
            """Candidates that are as popular as this, wherever rules lead."""
            everyone = self._popularity.count(relations[rows], value)
            return np.subtract(everyone, known_popular.count(rows, value))

        matches = find_matches(self._rules, self._edges, heads, relations)
        rivals = matches.without(*known)
        rival_popular = self._popularity.of(relations[rivals.queries], rivals.entities)
        popular = self._popularity.of(relations[rows], tails)
        total = popular + matches.evidence_of(rows, tails)
        # What rules reach counts with all its evidence, instead of its popularity alone.
        moved = np.subtract(
            Tally(rivals.queries, rival_popular + rivals.evidence).count(rows, total),
            Tally(rivals.queries, rival_popular).count(rows, total),
        )
        return others(total) + moved, others(popular)
