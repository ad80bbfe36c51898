"""Reasoner: load, answer, evaluate; the one facade behind every interface. ``train`` makes runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from knowformer.artifacts.bundle import (
    Bundle,
    holds_run,
    load_bundle,
    load_config,
    load_run_dataset,
    read_metrics,
    save_validated_weights,
    save_weights,
    start_run,
    update_metrics,
)
from knowformer.artifacts.learning_curve import can_draw, draw_learning_curve
from knowformer.atomic_files import remove_partial_files
from knowformer.errors import BundleError, ConfigError
from knowformer.evaluation.evaluate import Progress, Scorer, evaluate
from knowformer.evaluation.report import EvaluationReport
from knowformer.graph.dataset import Dataset, catalogue_name, load_dataset, load_graph
from knowformer.graph.inverse import inverse_of
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.model.knowformer import KnowFormer
from knowformer.queries.known_answers import KnownAnswers
from knowformer.training.config import (
    RunConfig,
    build_config,
    flat_settings,
    recommended_settings,
)
from knowformer.training.events import Event, read_events
from knowformer.training.loop import Trainer

Evidence = Literal["all", "train"]


@dataclass(frozen=True)
class Answer:
    """One candidate: an entity, or a relation when that was the question."""

    name: str
    rank: int
    score: float
    probability: float  # the model's own, not calibrated
    known: bool


@dataclass(frozen=True)
class Answers:
    """The best candidates for a question, best first."""

    head: str | None
    relation: str | None
    tail: str | None
    asks_for: Literal["head", "relation", "tail"]
    answers: list[Answer]
    num_candidates: int
    num_known: int

    def question(self) -> str:
        """Returns the question as it is written in the literature."""
        return f"({self.head or '?'}, {self.relation or '?'}, {self.tail or '?'})"


class Reasoner:
    """A trained model with a graph to answer on."""

    def __init__(
        self, bundle: Bundle, graph: KnowledgeGraph, known_facts: Tensor, *, threads: int = 0
    ) -> None:
        """Binds a loaded run to a graph; use ``from_pretrained``."""
        self.config = bundle.config
        self.dataset = bundle.dataset
        self.model = bundle.model
        self.folder = bundle.folder
        self.graph = graph
        self._threads = threads
        self._scorer = Scorer(bundle.model, graph, seed=bundle.config.seed, threads=threads)
        self._known = KnownAnswers(
            known_facts, num_entities=len(graph.entities), num_relations=len(graph.relations)
        )

    @classmethod
    def from_pretrained(
        cls,
        run: str | Path,
        *,
        graph: str | Path | None = None,
        evidence: Evidence = "all",
        threads: int = 0,
    ) -> "Reasoner":
        """Loads a run folder.

        Args:
            run: a folder made by ``train``.
            graph: answer on this graph instead: a triples file, a folder or a catalogue name whose
                relations are among the model's; its entities may all be new.
            evidence: facts to reason from: ``all`` that the data set has, or those of ``train``.
            threads: CPU threads; 0 takes all cores.

        Raises:
            BundleError: the run is missing or broken.
            DataError: the graph has a relation that the model does not know.
        """
        bundle = load_bundle(Path(run))
        dataset = bundle.dataset
        if graph is not None:
            other = load_graph(graph, dataset.relations)
            return cls(bundle, other, other.facts, threads=threads)
        own = dataset.test
        facts = own.known if evidence == "all" else own.graph.facts
        known_graph = KnowledgeGraph(own.graph.entities, own.graph.relations, facts)
        return cls(bundle, known_graph, own.known, threads=threads)

    def answer(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        k: int = 10,
        new_only: bool = False,
    ) -> Answers:
        """Answers a question; give two of head, relation and tail, and get the third.

        Args:
            head: the head's name.
            relation: the relation's name.
            tail: the tail's name.
            k: how many answers.
            new_only: leave out answers that are known facts.

        Raises:
            ConfigError: not exactly two of the three were given.
            VocabularyError: a name is unknown.
        """
        given = [part is not None for part in (head, relation, tail)]
        if sum(given) != 2:
            raise ConfigError(
                "Expected two of head, relation and tail, so that the third can be answered, got "
                f"{sum(given)}."
            )
        if k < 1:
            raise ConfigError(f"Expected a positive number of answers, got {k}.")
        if relation is None:
            assert head is not None
            assert tail is not None
            scores, likelihoods, known = self._score_relations(head, tail)
            names = self.graph.relations.names
        else:
            scores, likelihoods, known = self._score_entities(head, relation, tail)
            names = self.graph.entities.names
        # Scores of different relations do not compare, likelihoods do.
        order: Tensor = torch.argsort(
            likelihoods if relation is None else scores, descending=True, stable=True
        )
        probabilities = likelihoods.exp()
        if new_only:
            order = order[~known[order]]
        chosen: list[int] = order[:k].tolist()
        return Answers(
            head=head,
            relation=relation,
            tail=tail,
            asks_for="relation" if relation is None else ("head" if head is None else "tail"),
            answers=[
                Answer(names[i], rank, scores[i].item(), probabilities[i].item(), bool(known[i]))
                for rank, i in enumerate(chosen, start=1)
            ],
            num_candidates=len(scores),
            num_known=int(known.sum()),
        )

    def evaluate(
        self,
        split: str = "test",
        *,
        graph: str | Path | None = None,
        progress: Progress | None = None,
    ) -> EvaluationReport:
        """Evaluates on a split of the run's own data set, or of another with the same relations."""
        seed, dataset = self.config.seed, self.dataset
        if graph is not None:
            # The run's own seed: a file that the run was trained on is split as it was then.
            dataset = load_dataset(graph, seed=seed, relations=self.dataset.relations)
        return evaluate(
            self.model,
            dataset,
            split,
            seed=seed,
            threads=self._threads,
            progress=progress,
            trained_on=self.dataset.train.graph,
        )

    def _score_entities(
        self, head: str | None, relation: str, tail: str | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns score, log-probability and whether it is known, of every entity."""
        relations = torch.tensor([self.graph.relations.id(relation)])
        if head is None:
            # Who has this tail? The same question read backwards.
            relations = inverse_of(relations, len(self.graph.relations))
        asked_from = head if head is not None else tail
        assert asked_from is not None
        heads = torch.tensor([self.graph.entities.id(asked_from)])
        scores = self._scorer.score(heads, relations)
        known = self._known.mask(heads, relations)
        return scores[0], self._log_probabilities(scores)[0], known[0]

    def _score_relations(self, head: str, tail: str) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the same of (head, r, tail) for every relation r that has a name."""
        relations = torch.arange(len(self.graph.relations))
        heads = torch.full_like(relations, self.graph.entities.id(head))
        at = self.graph.entities.id(tail)
        scores = self._scorer.score(heads, relations)
        known = self._known.mask(heads, relations)
        return scores[:, at], self._log_probabilities(scores)[:, at], known[:, at]

    def _log_probabilities(self, scores: Float[Tensor, "B V"]) -> Float[Tensor, "B V"]:
        """What the loss makes of scores, as logarithms: a softmax over entities, or a sigmoid each.

        Unlike raw scores, these compare across relations; unlike probabilities, they do not end in
        ties at 0 and 1.
        """
        if self.config.training.loss == "cross_entropy":
            return scores.log_softmax(-1)
        return torch.nn.functional.logsigmoid(scores)


def train(
    graph: str | Path | Dataset | None,
    out: str | Path,
    *,
    config: RunConfig | None = None,
    resume: bool = False,
    on_event: Callable[[Event], None] | None = None,
    keep_validations: bool = False,
) -> Reasoner:
    """Trains a model and leaves a run folder behind.

    Args:
        graph: a catalogue name, a folder, a triples file, or a data set already loaded; may be None
            when resuming, as the run folder has all facts.
        out: the run folder.
        config: the settings; if not given, the defaults with what is recommended for the graph.
        resume: go on with the run in ``out`` if there is one; its settings must be the same.
        on_event: called with each event of training.
        keep_validations: keep the weights of every validation, not only those chosen; see
            ``artifacts.bundle.load_validated_weights``.

    Returns:
        A reasoner with the weights that did best on validation.
    """
    folder = Path(out)
    resume = resume and holds_run(folder)
    if resume:
        config, dataset = _stored_settings(folder, config), load_run_dataset(folder)
        _check_same_graph(folder, dataset, graph, config)
        remove_partial_files(folder)
    else:
        if graph is None:
            raise BundleError(
                f"Expected a run to go on with in {folder}, found none. Name a graph to train on."
            )
        config = config or recommended_config(graph)
        dataset = graph if isinstance(graph, Dataset) else load_dataset(graph, seed=config.seed)
        start_run(folder, config, dataset)

    def keep_best(model: KnowFormer, event: Event) -> None:
        save_weights(folder, model)
        update_metrics(folder, {"best_validation": _public(event)})

    def keep(model: KnowFormer, event: Event) -> None:
        save_validated_weights(folder, model, event["step"])

    trainer = Trainer(
        dataset.for_training(),
        config,
        folder,
        on_event=on_event,
        on_best=keep_best,
        on_validated=keep if keep_validations else None,
    )
    may_resume = (folder / "checkpoint.safetensors").exists()
    trainer.run(resume=resume and may_resume)
    save_weights(folder, trainer.model)
    if "best_validation" not in read_metrics(folder):
        best = {"step": trainer.counters.best_step, "valid_mrr": trainer.counters.best_mrr}
        update_metrics(folder, {"best_validation": best})
    _draw_curve(folder, title=f"{dataset.name}, seed {config.seed}")
    return Reasoner.from_pretrained(folder, threads=config.threads)


def _draw_curve(folder: Path, *, title: str) -> None:
    if can_draw():
        events = read_events(folder / "events.jsonl")
        draw_learning_curve(events, folder / "learning_curve.png", title=title)


def recommended_config(graph: str | Path | Dataset) -> RunConfig:
    """Returns the settings of a run for which none were given."""
    name = None if isinstance(graph, Dataset) else catalogue_name(graph)
    return build_config(defaults=recommended_settings(name))


def _stored_settings(folder: Path, wanted: RunConfig | None) -> RunConfig:
    stored = load_config(folder)
    if wanted is not None and wanted != stored:
        before, now = flat_settings(stored), flat_settings(wanted)
        key = next(key for key in before if before[key] != now[key])
        raise ConfigError(
            f"Expected the settings that {folder} was started with, {key} = {before[key]!r}, got "
            f"{now[key]!r}. Leave settings out to go on with that run, or choose another --out."
        )
    return stored


def _check_same_graph(
    folder: Path, stored: Dataset, graph: str | Path | Dataset | None, config: RunConfig
) -> None:
    if graph is None:
        return
    given = graph if isinstance(graph, Dataset) else load_dataset(graph, seed=config.seed)
    if not given.same_as(stored):
        raise BundleError(
            f"Expected the facts that {folder} was started with ({stored.name}), got others "
            f"({given.name}). Leave the graph out to go on with that run, or choose another --out."
        )


def _public(event: Event) -> dict[str, Any]:
    return {key: value for key, value in event.items() if key not in {"kind", "best"}}
