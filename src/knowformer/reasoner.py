"""Reasoner: load, answer, evaluate; the one facade behind every interface. ``train`` makes runs."""

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from knowformer.answering.engine import Engine, Options
from knowformer.answering.judge import Judge
from knowformer.answering.missing import Sweep, find_missing_facts
from knowformer.answering.questions import Question, build_question, question_parts
from knowformer.answering.results import Answers, AnswerStream, MissingFacts
from knowformer.artifacts.bundle import (
    Bundle,
    holds_run,
    load_bundle,
    load_calibration,
    load_config,
    load_run_dataset,
    read_metrics,
    save_calibration,
    save_weights,
    start_run,
    update_metrics,
)
from knowformer.artifacts.learning_curve import can_draw, draw_learning_curve
from knowformer.atomic_files import remove_partial_files
from knowformer.errors import BundleError, ConfigError, DataError
from knowformer.evaluation.calibration import Calibration
from knowformer.evaluation.calibration_fit import fit_calibration
from knowformer.evaluation.evaluate import Progress, Scorer, evaluate
from knowformer.evaluation.held_out_candidates import OwnProbability
from knowformer.evaluation.report import EvaluationReport
from knowformer.graph.dataset import Dataset, load_dataset, load_graph, load_labels
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.labels import Labels, read_label_file
from knowformer.model.knowformer import KnowFormer
from knowformer.training.config import RunConfig, flat_settings
from knowformer.training.events import Event, read_events
from knowformer.training.loop import Trainer

Evidence = Literal["all", "train"]

_logger = logging.getLogger(__name__)


class Reasoner:
    """A trained model with a graph to answer on."""

    def __init__(
        self,
        bundle: Bundle,
        graph: KnowledgeGraph,
        known_facts: Tensor,
        *,
        labels: Labels | None = None,
        threads: int = 0,
    ) -> None:
        """Binds a loaded run to a graph; use ``from_pretrained``."""
        self.config = bundle.config
        self.dataset = bundle.dataset
        self.model = bundle.model
        self.folder = bundle.folder
        self.calibration = bundle.calibration
        self.graph = graph
        self.labels = labels or Labels()
        self._threads = threads
        self._engine = Engine(
            bundle.model,
            graph,
            known_facts=known_facts,
            judge=Judge(bundle.calibration, _own_probability(bundle.config), graph.relations),
            labels=self.labels,
            seed=bundle.config.seed,
            threads=threads,
        )

    @classmethod
    def from_pretrained(
        cls,
        run: str | Path,
        *,
        graph: str | Path | None = None,
        evidence: Evidence = "all",
        labels: str | Path | None = None,
        threads: int = 0,
    ) -> "Reasoner":
        """Loads a run folder.

        Args:
            run: a folder made by ``train``.
            graph: answer on this graph instead: a triples file, a folder or a catalogue name whose
                relations are among the model's; its entities may all be new.
            evidence: facts to reason from: ``all`` that the data set has, or those of ``train``.
            labels: a file of ids and readable names, besides those that the data set has.
            threads: CPU threads; 0 takes all cores.

        Raises:
            BundleError: the run is missing or broken.
            DataError: the graph has a relation that the model does not know.
        """
        bundle = load_bundle(Path(run))
        dataset = bundle.dataset
        readable = dataset.labels
        if graph is not None:
            readable = readable.updated(load_labels(graph))
        if labels is not None:
            readable = readable.updated(read_label_file(Path(labels)))
        if graph is not None:
            other = load_graph(graph, dataset.relations)
            return cls(bundle, other, other.facts, labels=readable, threads=threads)
        own = dataset.test
        facts = own.known if evidence == "all" else own.graph.facts
        known_graph = KnowledgeGraph(own.graph.entities, own.graph.relations, facts)
        return cls(bundle, known_graph, own.known, labels=readable, threads=threads)

    def answer(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        k: int = 10,
        new_only: bool = False,
        samples: int = 1,
        progress: Progress | None = None,
    ) -> Answers:
        """Answers a question; give two of head, relation and tail, and get the third.

        Args:
            head: the head's name, or its readable name.
            relation: the relation's.
            tail: the tail's.
            k: how many answers.
            new_only: leave out answers that are known facts.
            samples: draws of the identity noise; more than one adds a spread to each answer.
            progress: called with passes of the model done and in all.

        Raises:
            ConfigError: not exactly two of the three were given.
            VocabularyError: a name is unknown.
        """
        question = self.question(head=head, relation=relation, tail=tail)
        options = _options(k, new_only, samples)
        return self._engine.answer([question], options, progress=progress)[0]

    def question(
        self, *, head: str | None = None, relation: str | None = None, tail: str | None = None
    ) -> Question:
        """Resolves names for ``answer_many``; raises what ``answer`` raises."""
        return build_question(self.graph, self.labels, head=head, relation=relation, tail=tail)

    def answer_many(
        self, questions: Iterable[Any], *, k: int = 10, new_only: bool = False, samples: int = 1
    ) -> AnswerStream:
        """Answers many questions in their order, in bounded memory, while they are iterated over.

        Args:
            questions: each (head, relation, tail) or a mapping with these keys, None or "?" for
                what is asked; or what ``question`` returned.
            k: how many answers each.
            new_only: leave out answers that are known facts.
            samples: draws of the identity noise.

        Raises:
            ConfigError: not exactly two of the three were given (on iterating, as below).
            VocabularyError: a name is unknown.
        """

        def resolved() -> Iterator[Question]:
            for given in questions:
                known = isinstance(given, Question)
                yield given if known else self.question(**question_parts(given))

        return AnswerStream(self._engine.stream(resolved(), _options(k, new_only, samples)))

    def missing_facts(
        self,
        relation: str,
        *,
        k: int = 10,
        sweep: Sweep = "heads",
        every_entity: bool = False,
        progress: Progress | None = None,
    ) -> MissingFacts:
        """Ranks the most probable facts of a relation that are not known.

        Args:
            relation: the relation's name, or its readable name.
            k: how many facts.
            sweep: ask every head of the relation for tails, or every tail for heads; the side with
                fewer entities is quicker.
            every_entity: ask every entity of the graph, not only those that have the relation.
            progress: called with entities asked and to ask.
        """
        number = self.labels.find_relation(relation, self.graph.relations)
        return find_missing_facts(
            self._engine,
            number,
            k=_options(k, False, 1).k,
            sweep=sweep,
            every_entity=every_entity,
            progress=progress,
        )

    def calibrate(self, *, progress: Progress | None = None) -> Calibration:
        """Fits probabilities to the run's validation facts anew, uses and stores them.

        Raises:
            DataError: there are too few validation facts.
        """
        valid = self.dataset.for_training().valid
        same_graph = self.dataset.test.graph is valid.graph
        calibration = fit_calibration(
            Scorer(self.model, valid.graph, seed=self.config.seed, threads=self._threads),
            valid,
            own=_own_probability(self.config),
            seed=self.config.seed,
            num_test_facts=len(self.dataset.test.facts) if same_graph else 0,
            progress=progress,
        )
        self.calibration = save_calibration(self.folder, calibration)
        own = _own_probability(self.config)
        self._engine.use(Judge(self.calibration, own, self.graph.relations))
        return self.calibration

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
            calibration=self.calibration,
        )


def train(
    graph: str | Path | Dataset | None,
    out: str | Path,
    *,
    config: RunConfig | None = None,
    resume: bool = False,
    on_event: Callable[[Event], None] | None = None,
) -> Reasoner:
    """Trains a model and leaves a run folder behind.

    Args:
        graph: a catalogue name, a folder, a triples file, or a data set already loaded; may be None
            when resuming, as the run folder has all facts.
        out: the run folder.
        config: the settings; the defaults if not given.
        resume: go on with the run in ``out`` if there is one; its settings must be the same.
        on_event: called with each event of training.

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
        config = config or RunConfig()
        dataset = graph if isinstance(graph, Dataset) else load_dataset(graph, seed=config.seed)
        start_run(folder, config, dataset)

    def keep_best(model: KnowFormer, event: Event) -> None:
        save_weights(folder, model)
        update_metrics(folder, {"best_validation": _public(event)})

    trainer = Trainer(dataset.for_training(), config, folder, on_event=on_event, on_best=keep_best)
    may_resume = (folder / "checkpoint.safetensors").exists()
    trainer.run(resume=resume and may_resume)
    save_weights(folder, trainer.model)
    if "best_validation" not in read_metrics(folder):
        best = {"step": trainer.counters.best_step, "valid_mrr": trainer.counters.best_mrr}
        update_metrics(folder, {"best_validation": best})
    if can_draw():
        draw_learning_curve(
            read_events(folder / "events.jsonl"),
            folder / "learning_curve.png",
            title=f"{dataset.name}, seed {config.seed}",
        )
    _calibrate_once(folder, config.threads, on_event)
    return Reasoner.from_pretrained(folder, threads=config.threads)


def _calibrate_once(folder: Path, threads: int, on_event: Callable[[Event], None] | None) -> None:
    """Fits probabilities at the end of a run, unless that was done."""
    if load_calibration(folder) is not None:
        return

    def tell(done: int, total: int) -> None:
        if on_event is not None:
            on_event({"kind": "calibration", "done": done, "total": total})

    try:
        Reasoner.from_pretrained(folder, threads=threads).calibrate(progress=tell)
    except DataError as error:
        _logger.info("Probabilities are not calibrated. %s", error)


def _own_probability(config: RunConfig) -> OwnProbability:
    """What the loss makes of scores."""
    return "softmax" if config.training.loss == "cross_entropy" else "sigmoid"


def _options(k: int, new_only: bool, samples: int) -> Options:
    if k < 1:
        raise ConfigError(f"Expected a positive number of answers, got {k}.")
    if samples < 1:
        raise ConfigError(f"Expected a positive number of samples, got {samples}.")
    return Options(k, new_only, samples)


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
