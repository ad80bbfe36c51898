"""BoundRun: a loaded run with a graph to answer on, which can be changed and sent elsewhere."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.choices import FactsFrom
from knowformer.data.dataset import GraphSource
from knowformer.data.labels import Labels, read_label_file
from knowformer.data.loading import is_graph, load_graph, load_labels
from knowformer.errors import BundleError, DataError
from knowformer.graph.fact_index import Ids
from knowformer.graph.knowledge_graph import KnowledgeGraph, fingerprint_of, number_facts
from knowformer.queries.known_answers import KnownAnswers
from knowformer.runs.folder import Bundle, holds_run, load_bundle, weights_sha256
from knowformer.runs.shipped import SHIPPED, SHIPPED_FOLDER, shipped_for
from knowformer.scoring.link import LinkFunction
from knowformer.storage.triples_io import NamedTriple

Bound = TypeVar("Bound", bound="BoundRun")  # not Self, which run-time checks of shapes refuse


class BoundRun:
    """A loaded run with a graph to answer on."""

    def __init__(
        self,
        bundle: Bundle,
        graph: KnowledgeGraph,
        known: Int[Tensor, "N 3"] | KnownAnswers | None = None,
        *,
        labels: Labels | None = None,
        threads: int = 0,
    ) -> None:
        """Binds a loaded run to a graph; use ``from_pretrained``.

        Args:
            bundle: the run.
            graph: its facts are what the model sees.
            known: facts that are marked as known; those of the graph if not given.
            labels: readable names.
            threads: CPU threads; 0 takes all cores.
        """
        self.config = bundle.config
        self.dataset = bundle.dataset
        self.model = bundle.model
        self.folder = bundle.folder
        self.link: LinkFunction = bundle.link
        self.calibration = bundle.calibration
        self.fixed_relations = bundle.fixed_relations
        """The relations that a graph must keep to; None: it may have any."""
        self.was_trained_on_it = bundle.was_trained_on_it
        """Whether the model has seen the data set's training facts before; else it is zero-shot."""
        self.graph = graph
        self.labels = labels or Labels()
        if isinstance(known, Tensor):
            sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
            known = KnownAnswers(known, **sizes)
        self._own_known = known  # where more is known than the graph's facts
        self._known = known or KnownAnswers.of(graph)
        self._threads = threads

    @property
    def is_shipped(self) -> bool:
        """Whether the run is the model that ships with the package, whose folder is not changed."""
        return self.folder == SHIPPED_FOLDER

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
            run: a folder made by ``train``, or what was loaded from one. Or a graph, on which the
                model that ships with the package answers; see ``zero_shot``.
            graph: answer on this graph instead: a graph, a data set, a triples file, a folder or a
                catalogue name. Its entities may all be new; its relations are among the model's,
                unless that reads them from the graph.
            evidence: facts to reason from: ``all`` that the data set has, or those of ``train``.
            labels: a file of ids and readable names, besides those that the data set has.
            threads: CPU threads; 0 takes all cores.

        Raises:
            BundleError: the run is missing or broken.
            DataError: a file of the graph has a relation that the model does not know.
            VocabularyError: a graph or a data set has one.
        """
        if not isinstance(run, Bundle):
            if graph is None and is_graph(run) and not holds_run(Path(run)):
                return cls.zero_shot(run, evidence=evidence, labels=labels, threads=threads)
            run = load_bundle(SHIPPED_FOLDER if str(run) == SHIPPED else Path(run))
        bundle, dataset = run, run.dataset
        readable = dataset.labels
        if graph is not None:
            readable = readable.updated(load_labels(graph))
        if labels is not None:
            readable = readable.updated(read_label_file(Path(labels)))
        if graph is not None:
            other = load_graph(graph, bundle.fixed_relations)
            return cls(bundle, other, labels=readable, threads=threads)
        if not len(dataset.relations):
            raise DataError(
                f"Expected a graph to answer on, as the model in {bundle.folder} comes without "
                "one, got none. Name it: `graph`."
            )
        own = dataset.test
        if evidence == "train":
            return cls(bundle, own.graph, own.known, labels=readable, threads=threads)
        return cls(bundle, own.known_graph(), labels=readable, threads=threads)

    @classmethod
    def zero_shot(
        cls: type[Bound],
        graph: GraphSource,
        *,
        evidence: FactsFrom = "all",
        labels: str | Path | None = None,
        threads: int = 0,
    ) -> Bound:
        """Answers on a graph without training, with the model that ships with the package.

        Args:
            graph: a graph, a data set, a triples file, a folder or a catalogue name.
            evidence: facts to reason from: ``all`` that the data set has, or those of ``train``.
            labels: a file of ids and readable names, besides those that the data set has.
            threads: CPU threads; 0 takes all cores.

        Raises:
            DataError: the graph's files are not as expected.
        """
        bundle = shipped_for(graph)
        return cls.from_pretrained(bundle, evidence=evidence, labels=labels, threads=threads)

    def on(self: Bound, graph: GraphSource) -> Bound:
        """Returns a reasoner on another graph, with the same model and probabilities.

        Its facts are both what the model sees and what is known. A snapshot of this reasoner's
        graph, ``reasoner.on(reasoner.graph.with_facts(...))``, shares what did not change.

        Args:
            graph: what ``from_pretrained`` takes, and refuses.
        """
        labels = self.labels.updated(load_labels(graph))
        return self._rebound(load_graph(graph, self.fixed_relations), labels=labels)

    def add_facts(self: Bound, facts: Iterable[NamedTriple]) -> Bound:
        """Returns a reasoner that also sees new facts; this one stays as it is.

        Args:
            facts: (head, relation, tail), by name or readable name; other entities are new ones.

        Raises:
            VocabularyError: a relation is not among the model's.
        """
        return self.with_facts(added=facts)

    def with_facts(
        self: Bound, added: Iterable[NamedTriple] = (), removed: Iterable[NamedTriple] = ()
    ) -> Bound:
        """Returns a reasoner after a change of facts, both seen and known; this one stays.

        Args:
            added: (head, relation, tail), by name or readable name; other entities are new ones.
            removed: the same, of facts that the graph has.

        Raises:
            VocabularyError: a relation is not among the model's, or an entity of a fact to remove.
            DataError: a fact to remove is not there.
        """
        come = [self.named_fact(*fact) for fact in added]
        gone = [self.named_fact(*fact) for fact in removed]
        return self.on_snapshot(self.graph.with_facts(come, gone), added=come, removed=gone)

    def named_fact(self, head: str, relation: str, tail: str) -> NamedTriple:
        """Returns a fact in the names of the graph; an entity that it does not know is a new one.

        Raises:
            VocabularyError: the relation is not among the model's, or a readable name stands for
                several.
        """
        entities, relations, labels = self.graph.entities, self.graph.relations, self.labels

        def entity(name: str) -> str:
            is_known = name not in entities and labels.has_entity(name, entities)
            return entities.name(labels.find_entity(name, entities)) if is_known else name

        known = relations.names[labels.find_relation(relation, relations)]
        return entity(head), known, entity(tail)

    def on_snapshot(
        self: Bound,
        graph: KnowledgeGraph,
        *,
        added: Iterable[NamedTriple],
        removed: Iterable[NamedTriple],
    ) -> Bound:
        """Returns a reasoner on a later snapshot of its graph.

        Args:
            graph: the snapshot.
            added: the facts that came since, in the graph's names.
            removed: the facts that went.
        """
        known = self._own_known
        if known is not None:
            numbered = [number_facts(f, graph.entities, graph.relations) for f in (added, removed)]
            sizes = {"num_entities": len(graph.entities), "num_relations": len(graph.relations)}
            known = known.changed(added=numbered[0], removed=numbered[1], **sizes)
        return self._rebound(graph, known, labels=self.labels)

    def graph_fingerprint(self) -> str:
        """Returns a checksum of the names and of all facts that are known."""
        if self._own_known is None:
            return self.graph.fingerprint
        return fingerprint_of(self.graph, self._own_known.keys)

    def _rebound(
        self: Bound, graph: KnowledgeGraph, known: KnownAnswers | None = None, *, labels: Labels
    ) -> Bound:
        return type(self)(self._bundle(), graph, known, labels=labels, threads=self._threads)

    def _bundle(self) -> Bundle:
        return Bundle(
            self.folder,
            self.config,
            self.dataset,
            self.model,
            self.link,
            self.calibration,
            self.was_trained_on_it,
        )

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
        known = self._own_known and self._own_known.facts(len(self.graph.relations)).numpy()
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
