"""BoundRun: a loaded run with a graph to answer on, which can be changed and sent elsewhere."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.choices import FactsFrom
from knowformer.data.dataset import GraphSource, load_graph, load_labels
from knowformer.data.labels import Labels, read_label_file
from knowformer.errors import BundleError
from knowformer.graph.fact_index import Ids
from knowformer.graph.knowledge_graph import KnowledgeGraph, number_facts
from knowformer.runs.folder import Bundle, load_bundle, weights_sha256
from knowformer.scoring.link import LinkFunction
from knowformer.storage.triples_io import NamedTriple

Bound = TypeVar("Bound", bound="BoundRun")  # not Self, which run-time checks of shapes refuse


class BoundRun:
    """A loaded run with a graph to answer on."""

    def __init__(
        self,
        bundle: Bundle,
        graph: KnowledgeGraph,
        known_facts: Int[Tensor, "N 3"] | None = None,
        *,
        labels: Labels | None = None,
        threads: int = 0,
    ) -> None:
        """Binds a loaded run to a graph; use ``from_pretrained``.

        Args:
            bundle: the run.
            graph: its facts are what the model sees; its relations are the model's.
            known_facts: facts that are marked as known; those of the graph if not given.
            labels: readable names.
            threads: CPU threads; 0 takes all cores.
        """
        self.config = bundle.config
        self.dataset = bundle.dataset
        self.model = bundle.model
        self.folder = bundle.folder
        self.link: LinkFunction = bundle.link
        self.calibration = bundle.calibration
        self.graph = graph
        self.labels = labels or Labels()
        self._known_facts = known_facts
        self._threads = threads

    def __repr__(self) -> str:
        graph = self.graph
        return (
            f"{type(self).__name__}(run {str(self.folder)!r}, trained on {self.dataset.name!r}; "
            f"answers on {len(graph.entities):,} entities, {len(graph.relations):,} relations and "
            f"{len(graph.facts):,} facts)"
        )

    @classmethod
    def from_pretrained(
        cls: type[Bound],
        run: str | Path | Bundle,
        *,
        graph: GraphSource | None = None,
        evidence: FactsFrom = "all",
        labels: str | Path | None = None,
        threads: int = 0,
    ) -> Bound:
        """Loads a run folder.

        Args:
            run: a folder made by ``train``, or what was loaded from one.
            graph: answer on this graph instead: a graph, a data set, a triples file, a folder or a
                catalogue name whose relations are among the model's; its entities may all be new.
            evidence: facts to reason from: ``all`` that the data set has, or those of ``train``.
            labels: a file of ids and readable names, besides those that the data set has.
            threads: CPU threads; 0 takes all cores.

        Raises:
            BundleError: the run is missing or broken.
            DataError: a file of the graph has a relation that the model does not know.
            VocabularyError: a graph or a data set has one.
        """
        bundle = run if isinstance(run, Bundle) else load_bundle(Path(run))
        dataset = bundle.dataset
        readable = dataset.labels
        if graph is not None:
            readable = readable.updated(load_labels(graph))
        if labels is not None:
            readable = readable.updated(read_label_file(Path(labels)))
        if graph is not None:
            other = load_graph(graph, dataset.relations)
            return cls(bundle, other, labels=readable, threads=threads)
        own = dataset.test
        if evidence == "train":
            return cls(bundle, own.graph, own.known, labels=readable, threads=threads)
        return cls(bundle, own.known_graph(), labels=readable, threads=threads)

    def on(self: Bound, graph: GraphSource) -> Bound:
        """Returns a reasoner on another graph, with the same model and probabilities.

        Its facts are both what the model sees and what is known. A snapshot of this reasoner's
        graph, ``reasoner.on(reasoner.graph.with_facts(...))``, shares what did not change.

        Args:
            graph: what ``from_pretrained`` takes, and refuses.
        """
        labels = self.labels.updated(load_labels(graph))
        return self._rebound(load_graph(graph, self.dataset.relations), labels=labels)

    def add_facts(self: Bound, facts: Iterable[NamedTriple]) -> Bound:
        """Returns a reasoner that also sees new facts; this one stays as it is.

        Args:
            facts: (head, relation, tail), by name or readable name; other entities are new ones.

        Raises:
            VocabularyError: a relation is not among the model's.
        """
        entities, relations, labels = self.graph.entities, self.graph.relations, self.labels

        def entity(name: str) -> str:
            is_known = labels.has_entity(name, entities)
            return entities.names[labels.find_entity(name, entities)] if is_known else name

        added = [
            (entity(head), relations.names[labels.find_relation(name, relations)], entity(tail))
            for head, name, tail in facts
        ]
        graph, known = self.graph.with_facts(added), self._known_facts
        if known is not None:
            known = torch.cat([known, number_facts(added, graph.entities, relations)]).unique(dim=0)
        return self._rebound(graph, known, labels=labels)

    def _rebound(
        self: Bound, graph: KnowledgeGraph, known_facts: Tensor | None = None, *, labels: Labels
    ) -> Bound:
        bundle = Bundle(
            self.folder, self.config, self.dataset, self.model, self.link, self.calibration
        )
        return type(self)(bundle, graph, known_facts, labels=labels, threads=self._threads)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the run folder's path and the graph, but no weights, for another process.

        Raises:
            BundleError: the model's weights are not those of its run folder.
        """
        stored = load_bundle(self.folder).model.state_dict()
        if not all(torch.equal(own, stored[name]) for name, own in self.model.state_dict().items()):
            raise BundleError(
                f"Expected the weights of {self.folder}, from which a pickled reasoner is loaded "
                "again, found others in its model. Pickle the model's `state_dict()` instead."
            )
        known = None if self._known_facts is None else self._known_facts.numpy()
        run, sha256 = self.folder.resolve(), weights_sha256(self.folder)
        arguments = (run, sha256, self.graph, known, self.labels, self._threads)
        return _load_pickled, (type(self), *arguments)


def _load_pickled(
    kind: type[BoundRun],
    run: Path,
    sha256: str,
    graph: KnowledgeGraph,
    known: Ids | None,
    labels: Labels,
    threads: int,
) -> BoundRun:
    bundle = load_bundle(run)
    if weights_sha256(run) != sha256:
        raise BundleError(
            f"Expected the weights in {run} that the reasoner was pickled with, found others. Load "
            "the run anew, with `Reasoner.from_pretrained`."
        )
    known_facts = None if known is None else torch.from_numpy(known)
    return kind(bundle, graph, known_facts, labels=labels, threads=threads)
