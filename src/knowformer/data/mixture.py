"""Several data sets as one: graphs side by side, which share neither entities nor relations.

A model that reads relations from the graph trains on all of them at once, as on one graph. It is
validated on graphs that it does not train on, whose relations it has never seen.
"""

from collections.abc import Iterable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.choices import SplitName
from knowformer.data.dataset import Dataset, Split
from knowformer.data.holdout import sample_facts
from knowformer.errors import DataError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.seeding import generator

FACTS_PER_GRAPH = 200  # of a graph to validate on: each counts as much as the others


def mix(
    training: Sequence[Dataset],
    validation: Sequence[Dataset] = (),
    *,
    facts_per_graph: int = FACTS_PER_GRAPH,
    seed: int = 0,
) -> Dataset:
    """Returns a data set that trains on all facts of some graphs and is validated on others.

    Args:
        training: data sets whose training facts are trained on.
        validation: data sets to validate on, by a sample of their validation facts, which are
            predicted from their training facts; so are their test facts. By default those that
            are trained on.
        facts_per_graph: how many validation and test facts each of them gives, at most.
        seed: draws these facts.

    Raises:
        DataError: two data sets have the same name.
    """
    every = [*training, *validation]
    names = [dataset.name for dataset in every]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise DataError(f"Expected data sets with names of their own, got {repeated!r} twice.")
    # One vocabulary: a relation that a graph does not have is a node apart in its relation graph.
    relations = _names([(each.name, each.relations) for each in every], "relation")
    trained = _Joined([(each, each.train.graph) for each in training], relations)
    asked = trained
    if validation:
        asked = _Joined([(each, each.valid.graph) for each in validation], relations)
    facts = trained.graph.facts
    return Dataset(
        " + ".join(each.name for each in training),
        Split("train", trained.graph, facts, facts),
        asked.split("valid", facts_per_graph, seed),
        asked.split("test", facts_per_graph, seed),
    )


def _names(vocabularies: Sequence[tuple[str, Vocabulary]], kind: str) -> Vocabulary:
    """Returns the names of several data sets, each with its data set's name before it."""
    return Vocabulary((f"{of}/{name}" for of, names in vocabularies for name in names), kind=kind)


class _Joined:
    """The graphs of several data sets as one."""

    def __init__(
        self, graphs: Sequence[tuple[Dataset, KnowledgeGraph]], relations: Vocabulary
    ) -> None:
        self._starts: list[tuple[Dataset, int, int]] = []  # first entity, first relation
        entity = 0
        for dataset, graph in graphs:
            relation = relations.id(f"{dataset.name}/{dataset.relations.names[0]}")
            self._starts.append((dataset, entity, relation))
            entity += len(graph.entities)
        entities = _names([(of.name, graph.entities) for of, graph in graphs], "entity")
        facts = self._moved([graph.facts for _, graph in graphs])
        self.graph = KnowledgeGraph(entities, relations, facts)

    def split(self, name: SplitName, limit: int, seed: int) -> Split:
        """Returns a split of all data sets, a sample of each."""
        splits = [of.split(name) for of, _, _ in self._starts]
        sampled = [
            sample_facts(split, limit, generator=generator(seed, "mixture", of.name, name)).facts
            for split, (of, _, _) in zip(splits, self._starts, strict=True)
        ]
        known = self._moved([split.known for split in splits])
        return Split(name, self.graph, self._moved(sampled), known)

    def _moved(self, facts: Iterable[Int[Tensor, "N 3"]]) -> Int[Tensor, "M 3"]:
        """Returns the facts of each data set in the numbers of all."""
        starts = [torch.tensor([entity, relation, entity]) for _, entity, relation in self._starts]
        return torch.cat([of + start for of, start in zip(facts, starts, strict=True)])
