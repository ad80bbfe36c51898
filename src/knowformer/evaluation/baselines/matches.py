"""Matches: the entities that rules lead to from a query's head, and how strong the evidence is."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from knowformer.evaluation.baselines.evidence import evidence
from knowformer.evaluation.baselines.rules import NO_STEP, Rules
from knowformer.graph.adjacency import Adjacency
from knowformer.graph.fact_index import sorted_distinct, spread

MAX_WALKS = 300
"""Of one rule from one head. One that leads anywhere says nothing, and costs the most."""


@dataclass(frozen=True)
class Matches:
    """Distinct pairs of a query and an entity, as query * V + entity, rising."""

    num_entities: int
    pairs: Int[np.ndarray, " N"]
    evidence: Float[np.ndarray, " N"]
    """Of all rules that lead there, in grains."""

    @property
    def queries(self) -> Int[np.ndarray, " N"]:
        """The query of each pair."""
        return self.pairs // self.num_entities

    @property
    def entities(self) -> Int[np.ndarray, " N"]:
        """The entity of each pair."""
        return self.pairs % self.num_entities

    def evidence_of(
        self, queries: Int[np.ndarray, " F"], entities: Int[np.ndarray, " F"]
    ) -> Float[np.ndarray, " F"]:
        """Returns the evidence for some pairs; zero where no rule leads."""
        if len(self.pairs) == 0:
            return np.zeros(len(queries))
        wanted = queries * self.num_entities + entities
        at = np.searchsorted(self.pairs, wanted).clip(max=len(self.pairs) - 1)
        return np.where(self.pairs[at] == wanted, self.evidence[at], 0.0)

    def without(self, queries: Int[np.ndarray, " K"], entities: Int[np.ndarray, " K"]) -> "Matches":
        """Returns the matches but for some pairs."""
        gone = queries * self.num_entities + entities
        kept = np.isin(self.pairs, gone, invert=True)
        return Matches(self.num_entities, self.pairs[kept], self.evidence[kept])


def find_matches(
    rules: Rules,
    edges: Adjacency,
    heads: Int[np.ndarray, " Q"],
    relations: Int[np.ndarray, " Q"],
) -> Matches:
    """Follows the rules of every query's relation from its head.

    A rule counts once for an entity, however many of its walks end there.
    """
    asked, rule = spread(rules.offsets[relations], rules.offsets[relations + 1])
    start, stop = edges.by_query.runs(heads[asked], rules.first[rule])
    is_followed = (rules.second[rule] == NO_STEP) | (stop - start <= MAX_WALKS)
    asked, rule = asked[is_followed], rule[is_followed]
    used, place = spread(start[is_followed], stop[is_followed])
    reached = edges.by_query.layout.column(edges.by_query.keys[place], "tail")

    second = rules.second[rule[used]]
    goes_on = np.flatnonzero(second != NO_STEP)
    start, stop = edges.by_query.runs(reached[goes_on], second[goes_on])
    num_walks = np.bincount(used[goes_on], weights=stop - start, minlength=len(rule))
    few = num_walks[used[goes_on]] <= MAX_WALKS
    walk, place = spread(start[few], stop[few])
    ends = edges.by_query.layout.column(edges.by_query.keys[place], "tail")
    used = np.concatenate([used[second == NO_STEP], used[goes_on[few]][walk]])
    reached = np.concatenate([reached[second == NO_STEP], ends])
    away = reached != heads[asked[used]]
    used, reached = used[away], reached[away]
    # `used` is a query and a rule: distinct, a rule counts once for an entity.
    once = sorted_distinct(used * edges.num_entities + reached)
    used, reached = once // edges.num_entities, once % edges.num_entities
    pairs, at = np.unique(asked[used] * edges.num_entities + reached, return_inverse=True)
    grains = evidence(rules.confidence[rule[used]])
    total = np.bincount(at, weights=grains, minlength=len(pairs)).astype(np.float64)
    return Matches(edges.num_entities, pairs, total)
