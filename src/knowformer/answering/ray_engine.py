"""Answers the shards of a folder job on Ray, on this machine or on many.

Ray Data hands out the shards and starts again what dies; each of its actors loads the run once.
What crosses between machines are plain values: paths, options, and where a shard begins. So the
run, the questions and the folder of answers must be at the same paths on every machine.
"""

import logging
import os
import platform
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from knowformer.answering.answering_run import AnsweringRun
from knowformer.answering.folder_job import FolderJob, answer_shard
from knowformer.answering.query_files import Span
from knowformer.answering.ranking import Options
from knowformer.choices import FactsFrom
from knowformer.errors import (
    BackendUnavailableError,
    BundleError,
    ConfigError,
    UserError,
    require_package,
)
from knowformer.system.workers import available_cores

BLOCKS = 20_000  # pieces of work that Ray Data keeps account of; beyond, one has several shards
OBJECT_STORE_BYTES = 100 * 2**20  # of a Ray of our own: only plain values cross


@dataclass(frozen=True)
class RayEngine:
    """Where the run is loaded from, in plain values, and how many load it."""

    run: str
    graph: str | None = None
    evidence: FactsFrom = "all"
    labels: str | None = None
    address: str | None = None
    """Of a Ray cluster, as ``ray.init`` takes it; None: one is started on this machine."""
    workers: int = 0
    """Processes that answer; 0: one for every core of the cluster."""
    threads: int = 1
    """Of each worker."""

    def answer(self, job: FolderJob, spans: Sequence[Span]) -> Iterator[int]:
        """Answers shards in any order; see ``ShardEngine``.

        Raises:
            MissingPackageError: Ray is not installed.
            BackendUnavailableError: it does not start, or there is none at the address.
            UserError: a worker cannot load the run, or not read or write a shard.
        """
        require_package("ray", extra="ray", purpose="answer on Ray")
        if self.workers < 0 or self.threads < 1:
            raise ConfigError(
                "Expected at least one thread and no negative number of workers, got "
                f"{self.threads} and {self.workers}."
            )
        if not spans:
            return
        with self._connected() as cores:
            workers = self.workers or max(1, cores // self.threads)
            yield from self._answer(job, spans, min(workers, len(spans)))

    def _answer(self, job: FolderJob, spans: Sequence[Span], workers: int) -> Iterator[int]:
        ray_data = import_module("ray.data")  # not among the packages that types are checked with
        logging.getLogger("ray.data").setLevel(logging.ERROR)  # how far it is, we say
        shards = [{"first": span.first, "offset": span.offset} for span in spans]
        data = ray_data.from_items(shards, override_num_blocks=min(len(shards), BLOCKS))
        data = data.map(
            ShardWorker,
            fn_constructor_kwargs={"plain": self._plain(job)},
            compute=ray_data.ActorPoolStrategy(size=workers),
            num_cpus=self.threads,
        )
        data.context.enable_progress_bars = False  # there is one
        data.context.print_on_execution_start = False
        for done in data.iter_rows():
            if done["error"]:
                raise UserError(done["error"])
            yield done["questions"]

    def _plain(self, job: FolderJob) -> dict[str, Any]:
        """Returns all that a worker needs to know."""
        return {
            "run": _same_elsewhere(self.run),
            "graph": None if self.graph is None else _same_elsewhere(self.graph),
            "evidence": self.evidence,
            "labels": None if self.labels is None else _same_elsewhere(self.labels),
            "threads": self.threads,
            "fingerprint": job.answerer.fingerprint(),
            "options": asdict(job.options),
            "queries": str(job.queries.resolve()),
            "folder": str(job.folder.resolve()),
            "format": job.format,
            "shard_rows": job.shard_rows,
        }

    @contextmanager
    def _connected(self) -> Generator[int]:
        """Yields how many cores the cluster has; one that is connected already stays so."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told what is run here
        ray = import_module("ray")
        is_own = not ray.is_initialized()
        if is_own:
            where: dict[str, Any] = {"address": self.address}
            if self.address is None:
                where = {
                    "address": "local",
                    "num_cpus": self.workers * self.threads or available_cores(),
                    "object_store_memory": OBJECT_STORE_BYTES,
                    "include_dashboard": False,
                }
            try:
                ray.init(**where, log_to_driver=False, logging_level=logging.WARNING)
            except Exception as error:
                wanted = "to start" if self.address is None else f"at {self.address!r}"
                raise BackendUnavailableError(
                    f"Expected Ray {wanted}, got: {error} 'ray status' says whether one runs; "
                    "the job goes on without it, too."
                ) from error
        try:
            yield int(ray.cluster_resources().get("CPU", 1))
        finally:
            if is_own:
                ray.shutdown()


class ShardWorker:
    """Answers shards in a process of Ray's; loads the run with the first of them."""

    def __init__(self, plain: dict[str, Any]) -> None:
        """Takes what ``RayEngine`` says; nothing is loaded yet, so that nothing fails here."""
        self._plain = plain
        self._job: FolderJob | None = None

    def __call__(self, shard: dict[str, Any]) -> dict[str, Any]:
        """Answers a shard; the user's errors come back as text, and not as objects."""
        plain = self._plain
        try:
            self._job = self._job or _load(plain)
            span = Span(int(shard["first"]), plain["shard_rows"], int(shard["offset"]))
            return {"questions": answer_shard(self._job, span), "error": ""}
        except UserError as error:
            return {"questions": 0, "error": f"{error} This was on {platform.node()}."}


def _load(plain: dict[str, Any]) -> FolderJob:
    run = AnsweringRun.from_pretrained(
        plain["run"],
        graph=plain["graph"],
        evidence=plain["evidence"],
        labels=plain["labels"],
        threads=plain["threads"],
    )
    if run.answerer.fingerprint() != plain["fingerprint"]:
        raise BundleError(
            f"Expected the model and the graph that the job was started with in {plain['run']}, "
            "found others. They must be the same on every machine."
        )
    return FolderJob(
        run.answerer,
        Options(**plain["options"]),
        Path(plain["queries"]),
        Path(plain["folder"]),
        plain["format"],
        plain["shard_rows"],
    )


def _same_elsewhere(source: str) -> str:
    """Returns a path that does not depend on the folder one is in; other names stay."""
    path = Path(source)
    return str(path.resolve()) if path.exists() else source
