"""Jobs: files of questions, answered one after the other in a thread of their own.

A job is a folder: ``job.json``, the questions, and later the answers and the rows that could not be
asked. What is under way when the server ends goes on when it starts again: answers are kept part by
part, and a part that is there is not answered again unless the graph has changed.
"""

import logging
import secrets
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from errno import ELOOP
from http import HTTPStatus
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from knowformer.answering.candidates import HowToAnswer
from knowformer.errors import BundleError, KnowformerError, StorageError
from knowformer.live.snapshots import Snapshot
from knowformer.server.problems import Problem
from knowformer.storage.atomic_files import write_bytes, write_text
from knowformer.storage.plain_files import read_plain

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
JobFormat = Literal["tsv", "csv", "jsonl", "parquet"]
ENDED = ("done", "failed", "cancelled")
MAX_UNDER_WAY = 32
MAX_KEPT = 200
JOB_ID = "^[0-9a-f]{16}$"
RECORD = "job.json"
MOST_BYTES = 2**20  # of a record
_logger = logging.getLogger(__name__)


class Job(BaseModel):
    """A file of questions and how far it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=JOB_ID)]
    questions: JobFormat
    """What the questions are written in."""
    format: JobFormat
    """What the answers are written in."""
    k: int
    new_only: bool
    author: str | None
    created: str
    state: JobState = "queued"
    done: int = 0
    total: int = 0
    rejected: int = 0
    error: str | None = None
    snapshot: int | None = None
    """The version of the graph that it is answered on; None: it has not begun."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ENDED


class StoppedError(Exception):
    """The job was cancelled, or the server ends."""


class Jobs:
    """The jobs of a server, in a folder."""

    def __init__(self, folder: Path, snapshot: Callable[[], Snapshot]) -> None:
        """Reads the jobs that are there; ``start`` goes on with those that have not ended.

        Args:
            folder: of the jobs; made when the first one comes.
            snapshot: returns the newest snapshot of the graph.
        """
        self._folder = folder
        self._snapshot = snapshot
        self._lock = Lock()
        self._jobs = _read(folder)
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name="jobs", daemon=True)
        self._is_stopping = False

    def start(self) -> None:
        """Begins to answer, the oldest job first."""
        for job in sorted(self._jobs.values(), key=lambda job: job.created):
            if not job.has_ended:
                self._queue.put(job.id)
        self._thread.start()

    def stop(self) -> None:
        """Ends after the part that is under way; the rest goes on at the next start."""
        self._is_stopping = True
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join()

    def every(self) -> list[Job]:
        """Returns all jobs, newest first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: job.created, reverse=True)

    def find(self, number: str) -> Job:
        """Returns a job.

        Raises:
            Problem: there is none with this id.
        """
        with self._lock:
            job = self._jobs.get(number)
        if job is None:
            raise Problem(HTTPStatus.NOT_FOUND, "Expected the id of a job, got another one.")
        return job

    def add(
        self,
        content: bytes,
        *,
        questions: JobFormat,
        answers: JobFormat,
        k: int,
        new_only: bool,
        author: str | None,
    ) -> Job:
        """Stores questions, to be answered in their turn.

        Raises:
            Problem: too many jobs wait.
            StorageError: they cannot be stored.
        """
        job = Job(
            id=secrets.token_hex(8),
            questions=questions,
            format=answers,
            k=k,
            new_only=new_only,
            author=author,
            created=datetime.now(UTC).isoformat(timespec="microseconds"),
        )
        with self._lock:
            if sum(not each.has_ended for each in self._jobs.values()) >= MAX_UNDER_WAY:
                raise Problem(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    f"Expected at most {MAX_UNDER_WAY} jobs at a time; so many wait already.",
                    headers={"Retry-After": "10"},
                )
            try:
                write_bytes(self.questions(job), content)
                self._write(job)
            except BaseException:
                shutil.rmtree(self._folder / job.id, ignore_errors=True)
                raise
            self._jobs[job.id] = job
            self._forget_old()
        self._queue.put(job.id)
        return job

    def cancel(self, number: str) -> Job:
        """Ends a job; one that has ended stays as it is.

        Raises:
            Problem: there is none with this id.
            StorageError: it cannot be stored; the job goes on.
        """
        self.find(number)
        return self._update(number, state="cancelled", must_be_stored=True)

    def questions(self, job: Job) -> Path:
        """Returns the file of questions."""
        return self._folder / job.id / f"questions.{job.questions}"

    def result(self, job: Job) -> Path:
        """Returns the file of answers."""
        return self._folder / job.id / f"answers.{job.format}"

    def rejected(self, job: Job) -> Path:
        """Returns the list of rows that could not be asked."""
        answers = self.result(job)
        return answers.with_name(f"{answers.name}.rejected")

    def _run(self) -> None:
        while (number := self._queue.get()) is not None:
            try:
                self._answer(number)
            except StoppedError:
                continue
            except KnowformerError as error:
                folder = f"{self._folder / number}/"
                self._update(number, state="failed", error=str(error).replace(folder, ""))
            except Exception:  # the thread must live on
                _logger.exception("A job failed: %s", number)
                self._update(number, state="failed", error="The server failed; its log says more.")

    def _answer(self, number: str) -> None:
        snapshot = self._snapshot()
        job = self._update(number, state="running", snapshot=snapshot.version)
        if job.has_ended:
            return

        def progress(done: int, total: int) -> None:
            now = self._update(number, done=max(done, self.find(number).done), total=total)
            if self._is_stopping or now.has_ended:
                raise StoppedError

        how = HowToAnswer(k=job.k, new_only=job.new_only)
        summary = snapshot.reasoner.answer_file(
            self.questions(job), self.result(job), progress=progress, **how
        )
        self._update(
            number,
            state="done",
            done=summary.questions,
            total=summary.questions,
            rejected=summary.rejected,
        )

    def _update(self, number: str, *, must_be_stored: bool = False, **changes: Any) -> Job:
        """Changes a job unless it has ended; only a change of its state is worth a write.

        On a full disk jobs go on all the same: the next server answers again what it does not know
        to be done.
        """
        with self._lock:
            job = self._jobs[number]
            if job.has_ended:
                return job
            changed = job.model_copy(update=changes)
            try:
                if changed.state != job.state:
                    self._write(changed)
            except StorageError as error:
                if must_be_stored:
                    raise
                _logger.warning("The state of a job, %s, is not stored: %s", changed.state, error)
            self._jobs[number] = changed
            return changed

    def _write(self, job: Job) -> None:
        write_text(self._folder / job.id / RECORD, job.model_dump_json(indent=2) + "\n")

    def _forget_old(self) -> None:
        """Removes the oldest jobs that have ended, beyond a number."""
        ended = [job for job in self._jobs.values() if job.has_ended]
        for job in sorted(ended, key=lambda job: job.created)[: max(0, len(ended) - MAX_KEPT)]:
            del self._jobs[job.id]
            shutil.rmtree(self._folder / job.id, ignore_errors=True)


def _read(folder: Path) -> dict[str, Job]:
    """Reads the jobs of a folder; what is no job is left alone.

    Raises:
        BundleError: the folder is a link.
    """
    if folder.is_symlink():
        raise BundleError(
            f"Expected a folder of jobs at {folder}, found a symbolic link. Remove it, or choose "
            "another `store`."
        )
    jobs: dict[str, Job] = {}
    for path in sorted(folder.glob(f"*/{RECORD}")):
        try:
            _check_folder(path.parent)
            job = Job.model_validate_json(read_plain(path, most=MOST_BYTES))
        except (OSError, ValidationError) as error:
            _logger.warning("%s is no record of a job and is left alone: %s", path, error)
            continue
        if job.id == path.parent.name:
            jobs[job.id] = job
    return jobs


def _check_folder(folder: Path) -> None:
    """Refuses links: the folder may have come with a run, and they would lead out of it.

    Raises:
        OSError: the folder is one, or there is one in it.
    """
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            raise OSError(ELOOP, "it is a symbolic link", str(path))
