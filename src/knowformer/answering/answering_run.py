"""AnsweringRun: a loaded run that answers files of questions; the same wherever it is loaded."""

from pathlib import Path
from typing import Unpack

from jaxtyping import Int
from torch import Tensor

from knowformer.answering.answerer import Answerer
from knowformer.answering.batch_job import BatchSummary, Progress, answer_file
from knowformer.answering.candidates import HowToAnswer
from knowformer.answering.folder_job import ShardEngine, answer_folder
from knowformer.calibration.calibrator import Calibrator
from knowformer.choices import AnswerFormat
from knowformer.data.labels import Labels
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.queries.known_answers import KnownAnswers
from knowformer.runs.bound_run import BoundRun
from knowformer.runs.folder import Bundle


class AnsweringRun(BoundRun):
    """A loaded run with a graph, and an answerer on it."""

    def __init__(
        self,
        bundle: Bundle,
        graph: KnowledgeGraph,
        known: Int[Tensor, "N 3"] | KnownAnswers | None = None,
        *,
        labels: Labels | None = None,
        threads: int = 0,
    ) -> None:
        super().__init__(bundle, graph, known, labels=labels, threads=threads)
        self._answerer = Answerer(
            bundle.model,
            graph,
            known=self._known,
            calibrator=Calibrator(bundle.calibration, bundle.link, graph.relations),
            labels=self.labels,
            seed=bundle.config.seed,
            threads=threads,
        )

    @property
    def answerer(self) -> Answerer:
        """What answers, in names."""
        return self._answerer

    def answer_file(
        self,
        queries: str | Path,
        out: str | Path,
        *,
        resume: bool = True,
        progress: Progress | None = None,
        **how: Unpack[HowToAnswer],
    ) -> BatchSummary:
        """Answers a file of questions of any size into a file; a crash loses little.

        Rows that are no questions, or have an unknown name, are listed in ``OUT.rejected``.

        Args:
            queries: questions, one a row: .tsv, .csv, .jsonl or .parquet; see
                ``answering.query_files``.
            out: the file of answers, of one of the same formats; it appears when all are there.
            resume: go on with what an earlier start of the same job has left; else start anew.
            progress: called with questions done and in all, first for answering, then for writing.
            how: as of ``answer``.

        Raises:
            UserError: the questions cannot be read or the answers cannot be written.
        """
        options = self._answerer.options(**how)
        return answer_file(
            self._answerer, Path(queries), Path(out), options, resume=resume, progress=progress
        )

    def answer_folder(
        self,
        queries: str | Path,
        out: str | Path,
        *,
        engine: ShardEngine | None = None,
        format: AnswerFormat = "jsonl",  # noqa: A002 - what it is called on the command line
        shard_rows: int | None = None,
        progress: Progress | None = None,
        **how: Unpack[HowToAnswer],
    ) -> BatchSummary:
        """Answers a file of questions into a folder of shards, here or on Ray; a kill loses little.

        Rows that are no questions, or have an unknown name, are listed in ``OUT/rejected.tsv``.

        Args:
            queries: as of ``answer_file``.
            out: the folder; see ``answering.folder_job``. The same call goes on with it.
            engine: ``answering.ray_engine.RayEngine(run, ...)``; none: in this process. A job may
                go on with another engine than it was begun with.
            format: of the answers: ``jsonl``, ``parquet``, ``tsv`` or ``csv``.
            shard_rows: lines of the questions that a shard has; chosen if not given.
            progress: called with questions done and in all.
            how: as of ``answer``.

        Raises:
            UserError: the questions cannot be read, the answers cannot be written, or the folder is
                of another job.
        """
        return answer_folder(
            self._answerer,
            Path(queries),
            Path(out),
            self._answerer.options(**how),
            engine=engine,
            format=format,
            shard_rows=shard_rows,
            progress=progress,
        )
