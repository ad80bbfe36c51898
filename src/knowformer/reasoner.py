"""Reasoner: load, answer, explain, evaluate; the one facade behind every interface."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from knowformer.answering.answerer import NamesOrIds
from knowformer.answering.answering_run import AnsweringRun
from knowformer.answering.candidates import HowToAnswer, Names
from knowformer.answering.questions import Question, question_parts
from knowformer.answering.results import Answers, AnswerStream, MissingFacts
from knowformer.answering.what_if import LOOKED_AT, WhatIf, compare_answers
from knowformer.calibration.calibrate import calibrate_model
from knowformer.calibration.calibration import Calibration
from knowformer.calibration.calibrator import Calibrator
from knowformer.choices import NUM_PATHS, NUM_PROTOTYPES, AsksFor, Sweep
from knowformer.data.dataset import Dataset, GraphSource
from knowformer.data.holdout import sample_facts
from knowformer.data.loading import load_dataset
from knowformer.errors import BundleError, ConfigError
from knowformer.evaluation.evaluate import Progress, evaluate
from knowformer.evaluation.report import EvaluationReport
from knowformer.explanation.check.benchmark import measure_test_set
from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
from knowformer.explanation.comparison import Comparison
from knowformer.explanation.example import NUM_ASKED, Example, choose_example, find_facts
from knowformer.explanation.explainer import Explainer
from knowformer.explanation.explanation import Explanation
from knowformer.explanation.find.evidence import EvidenceFinder
from knowformer.queries.scores import Scores
from knowformer.runs.folder import save_calibration
from knowformer.runs.shipped import no_graph, settle
from knowformer.scoring.scorer import Scorer
from knowformer.seeding import generator
from knowformer.storage.triples_io import NamedTriple


class Reasoner(AnsweringRun):
    """A trained model with a graph to answer on; ``from_pretrained`` loads one."""

    def answer(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        progress: Progress | None = None,
        **how: Unpack[HowToAnswer],
    ) -> Answers:
        """Answers a question; give two of head, relation and tail, and get the third.

        Args:
            head: the head's name, or its readable name.
            relation: the relation's.
            tail: the tail's.
            progress: called with passes of the model done and in all.
            how: options, such as ``k`` and ``new_only``; see ``HowToAnswer``.

        Raises:
            ConfigError: not exactly two of the three were given.
            VocabularyError: a name is unknown.
        """
        question = self.question(head=head, relation=relation, tail=tail)
        options = self._answerer.options(**how)
        if relation is None and options.among is not None:
            raise ConfigError("Expected candidates for a head or a tail, got them for a relation.")
        return self._answerer.answer([question], options, progress=progress)[0]

    def what_if(
        self,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        without: Iterable[NamedTriple] = (),
        also: Iterable[NamedTriple] = (),
        **how: Unpack[HowToAnswer],
    ) -> WhatIf:
        """Answers a question as it is, and as if facts were gone or there; nothing is stored.

        Args:
            head: as of ``answer``, like ``relation`` and ``tail``.
            relation: the relation's name.
            tail: the tail's.
            without: facts (head, relation, tail) of the graph, by name or readable name.
            also: further facts; their entities may be new.
            how: as of ``answer``.

        Raises:
            DataError: a fact to leave out is not there.
            ConfigError: no fact was given, or as of ``answer``.
            VocabularyError: a name is unknown.
        """
        come, gone = list(also), list(without)
        if not come and not gone:
            raise ConfigError("Expected facts to leave out or to add, got none.")
        k = self._answerer.options(**how).k
        looked_at: HowToAnswer = {**how, "k": max(k, LOOKED_AT)}
        before, after = (
            reasoner.answer(head=head, relation=relation, tail=tail, **looked_at)
            for reasoner in (self, self.with_facts(come, gone))
        )
        return compare_answers(before, after, k=k)

    def score(self, heads: NamesOrIds, relations: NamesOrIds) -> Scores:
        """Scores every entity that each query (head, relation, ?) sees, without gradients.

        ``dense()`` of what it returns is a tensor with a row per query and a column per entity of
        ``graph.entities``. A query has the same scores whenever and beside whatever it is asked.

        Args:
            heads: names, readable names or ids.
            relations: one for each head; the id of a relation plus ``len(graph.relations)`` is its
                inverse, which asks for heads.

        Raises:
            VocabularyError: a name or an id is unknown.
        """
        return self._answerer.score(heads, relations)

    def question(
        self, *, head: str | None = None, relation: str | None = None, tail: str | None = None
    ) -> Question:
        """Resolves names for ``answer_many``; raises what ``answer`` raises."""
        return self._answerer.question(head=head, relation=relation, tail=tail)

    def answer_many(self, questions: Iterable[Any], **how: Unpack[HowToAnswer]) -> AnswerStream:
        """Answers many questions in their order, in bounded memory, while they are iterated over.

        Args:
            questions: each (head, relation, tail) or a mapping with these keys, None or "?" for
                what is asked; or what ``question`` returned.
            how: as of ``answer``.

        Raises:
            ConfigError: not exactly two of the three were given (on iterating, as below).
            VocabularyError: a name is unknown.
        """

        def resolved() -> Iterator[Question]:
            for given in questions:
                known = isinstance(given, Question)
                yield given if known else self.question(**question_parts(given))

        options = self._answerer.options(**how)
        return AnswerStream(lambda: self._answerer.stream(resolved(), options))

    def missing_facts(
        self,
        relation: str,
        *,
        k: int = 10,
        sweep: Sweep = "heads",
        every_entity: bool = False,
        candidates: Names | None = None,
        of_type: str | None = None,
        progress: Progress | None = None,
    ) -> MissingFacts:
        """Ranks the most probable facts of a relation that are not known.

        Args:
            relation: the relation's name, or its readable name.
            k: how many facts.
            sweep: ask every head of the relation for tails, or every tail for heads; the side with
                fewer entities is quicker.
            every_entity: ask every entity of the graph, not only those that have the relation.
            candidates: the only entities that may answer; see ``answer``.
            of_type: only entities of a type may.
            progress: called with entities asked and to ask.
        """
        return self._answerer.missing_facts(
            relation,
            k=self._answerer.options(k=k).k,
            sweep=sweep,
            every_entity=every_entity,
            among=self._answerer.among(candidates, of_type),
            progress=progress,
        )

    def calibrate(
        self, out: str | Path | None = None, *, progress: Progress | None = None
    ) -> Calibration:
        """Fits probabilities to the data set's validation facts anew, uses and stores them.

        Args:
            out: a new run folder, for the model that ships with the package: it gets that model,
                the graph that it answers on, and the probabilities. Other runs store their own.
            progress: called with what is done and what there is in all.

        Raises:
            DataError: there are too few validation facts.
            BundleError: ``out`` is missing, holds a run, or is given for a run of one's own.
        """
        if self.is_shipped != (out is not None):
            needed = (
                "`out`, a new run folder for the model that ships with knowformer and its graph"
            )
            raise BundleError(
                f"Expected {needed}, got none."
                if out is None
                else f"Expected no `out` for {self.folder}, which keeps its own probabilities."
            )
        calibration = calibrate_model(
            self.model,
            self.dataset,
            link=self.link,
            seed=self.config.seed,
            threads=self._threads,
            progress=progress,
        )
        if out is not None:
            self.folder = settle(self._bundle(), Path(out))
        self.calibration = save_calibration(self.folder, calibration)
        self._answerer.use(Calibrator(self.calibration, self.link, self.graph.relations))
        self.__dict__.pop("_explainer", None)  # its probabilities are the old ones
        return self.calibration

    def evaluate(
        self,
        split: str = "test",
        *,
        graph: GraphSource | None = None,
        relations: int = 0,
        num_facts: int | None = None,
        progress: Progress | None = None,
        command: str | None = None,
    ) -> EvaluationReport:
        """Evaluates on a split of the run's own data set, or of another with the same relations.

        Two baselines are ranked beside the model. The report also has the ranks of single facts,
        ``report.facts``, and metrics by relation, ``report.by_relation()``.

        Args:
            split: ``test``, ``valid`` or ``train``.
            graph: another data set.
            relations: ask for the relation of so many facts as well.
            num_facts: ask a sample of so many facts, drawn by the run's seed; none: all.
            progress: called with facts done and facts in all.
            command: what the user typed, to be kept in the report.
        """
        return evaluate(
            self.model,
            self._dataset(graph),
            split,
            seed=self.config.seed,
            threads=self._threads,
            progress=progress,
            trained_on=self.dataset.train.graph if self.was_trained_on_it else no_graph(),
            calibration=self.calibration,
            link=self.link,
            relations=relations,
            num_facts=num_facts,
            command=command,
        )

    def explain(
        self,
        *,
        head: str,
        relation: str,
        tail: str,
        asks_for: AsksFor = "tail",
        k: int = NUM_PATHS,
        num_prototypes: int = NUM_PROTOTYPES,
    ) -> Explanation:
        """Explains an answer: paths, prototypes, and what the answer loses without them.

        Args:
            head: the head's name, or its readable name.
            relation: the relation's.
            tail: the tail's.
            asks_for: ``tail`` explains it as the answer to (head, relation, ?), ``head`` the head
                as the answer to (?, relation, tail).
            k: how many paths.
            num_prototypes: how many entities that the answer attends to.

        Raises:
            VocabularyError: a name is unknown.
        """
        if k < 1 or num_prototypes < 1:
            raise ConfigError(
                f"Expected a positive number of paths and prototypes, got {k} and {num_prototypes}."
            )
        return self._explainer.explain(
            head, relation, tail, asks_for=asks_for, num_paths=k, num_prototypes=num_prototypes
        )

    def compare(
        self,
        *,
        relation: str,
        first: str,
        second: str,
        head: str | None = None,
        tail: str | None = None,
        k: int = NUM_PATHS,
        num_prototypes: int = NUM_PROTOTYPES,
    ) -> Comparison:
        """Explains two answers to (head, relation, ?) or to (?, relation, tail), side by side.

        Raises:
            ConfigError, VocabularyError: as of ``answer``.
        """
        self.question(head=head, relation=relation, tail=tail)
        asked: AsksFor = "tail" if head is not None else "head"
        given = {"head": head or "", "relation": relation, "tail": tail or ""}
        how: dict[str, Any] = {"asks_for": asked, "k": k, "num_prototypes": num_prototypes}
        return Comparison(
            *(self.explain(**given | {asked: answer}, **how) for answer in (first, second))
        )

    def example(self, *, progress: Progress | None = None) -> Example:
        """Returns a test fact that the model finds, with its explanation, chosen by a rule.

        Best on a reasoner with ``evidence="train"``, which has not seen the test facts.

        Args:
            progress: called with facts explained and to explain.

        Raises:
            DataError: the model ranks no test fact of a sample first.
        """
        seed = self.config.seed
        split = sample_facts(self.dataset.test, NUM_ASKED, generator=generator(seed, "example"))
        scorer = Scorer(self.model, self.graph, seed=seed, threads=self._threads)
        found = find_facts(scorer, replace(split, graph=self.graph), self._known)
        return choose_example(self._explainer, found, num_asked=len(split.facts), progress=progress)

    @cached_property
    def _explainer(self) -> Explainer:
        seed = self.config.seed
        calibrator = Calibrator(self.calibration, self.link, self.graph.relations)
        finder = EvidenceFinder(
            self.model, self.graph, self._known, seed=seed, calibrator=calibrator
        )
        return Explainer(finder, labels=self.labels, seed=seed)

    def measure_faithfulness(
        self,
        num_predictions: int = 200,
        *,
        graph: GraphSource | None = None,
        progress: Progress | None = None,
        command: str | None = None,
    ) -> FaithfulnessReport:
        """Explains test facts, and says how far the explanations can be trusted.

        Args:
            num_predictions: test facts to explain, each asked for its head or its tail.
            graph: take the test facts of this data set, not of the run's own.
            progress: called with predictions done and predictions in all.
            command: what the user typed, to be kept in the report.
        """
        return measure_test_set(
            self.model,
            self._dataset(graph),
            num_predictions,
            seed=self.config.seed,
            progress=progress,
            command=command,
        )

    def _dataset(self, graph: GraphSource | None) -> Dataset:
        if graph is None:
            return self.dataset
        # The run's own seed: a file that the run was trained on is split as it was then.
        return load_dataset(graph, seed=self.config.seed, relations=self.fixed_relations)
