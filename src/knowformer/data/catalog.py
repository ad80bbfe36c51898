"""Benchmark names to verified files: what a data set holds, where it lies, how to fetch it.

A data set is looked for inside the package, under ``$KNOWFORMER_DATA``, then in the user's cache
(``$KNOWFORMER_CACHE``, or the system's place for caches); what is nowhere is downloaded into the
cache. No file is handed out before its size and checksum agree with ``catalog.json``, which
``scripts/make_catalog.py`` makes. Reading the catalogue touches neither network nor data.
"""

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Literal

from knowformer.errors import DataError, DownloadError, suggest
from knowformer.storage.atomic_files import atomic_path

DATA_VARIABLE = "KNOWFORMER_DATA"
CACHE_VARIABLE = "KNOWFORMER_CACHE"

EMBEDDED_FOLDER = Path(__file__).with_name("embedded")
CATALOG_FILE = Path(__file__).with_name("catalog.json")

Kind = Literal["transductive", "development", "inductive", "fully-inductive", "homogeneous"]
"""A development data set is a transductive one that choices of defaults may be made on."""

ProgressCallback = Callable[[str, int, int | None], None]
"""Called while a file arrives, with its path, the bytes so far in this try, and in all if known."""

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CatalogFile:
    """One file of a data set, as it must be."""

    path: str
    """Relative, with forward slashes: ``inductive/wn18rr_v1_ind/train.txt``."""
    lines: int
    bytes: int | None
    """``None`` where no copy could be measured."""
    sources: tuple[str, ...]
    """Addresses whose contents, one after the other, are the file; empty if it must be supplied."""
    sha256: str | None = None
    md5: str | None = None
    """Stands in where no sha256 sum is known."""
    optional: bool = False
    """Readable names and the like; a data set is whole without them."""

    @property
    def checksum(self) -> tuple[str, str]:
        """Algorithm and expected hexadecimal digest."""
        return ("sha256", self.sha256) if self.sha256 else ("md5", self.md5 or "")


@dataclass(frozen=True)
class GraphCounts:
    """How large a graph is when it was read right."""

    entities: int
    """Named in any of the splits; of a homogeneous graph also nodes without an edge."""
    relations: int
    """Without inverses."""
    facts: Mapping[str, int]
    """By split, that is by file name without ``.txt``."""


@dataclass(frozen=True)
class CatalogEntry:
    """One data set: its files, and what they should hold."""

    name: str
    kind: Kind
    embedded: bool
    counts: GraphCounts
    """Of the whole data set, or of the training graph where the test graph is another one."""
    test_graph_counts: GraphCounts | None
    """Inductive: of the folder ``NAME_ind``. Fully inductive: of msg, valid and test."""
    origin: str
    licence: str
    notes: tuple[str, ...]
    files: tuple[CatalogFile, ...]

    @property
    def required_files(self) -> tuple[CatalogFile, ...]:
        """The files without which the data set is not whole."""
        return tuple(file for file in self.files if not file.optional)


@dataclass(frozen=True)
class DownloadPolicy:
    """How patient a download is."""

    timeout_seconds: float = 30.0
    """Longest silence, on connecting and between two pieces of a file."""
    attempts: int = 3
    """Tries per file; what a further try cannot mend (404, another file's bytes) gets only one."""
    wait_seconds: float = 1.0
    """Pause before the second try; doubles with each further one."""


def entries() -> dict[str, CatalogEntry]:
    """Returns all data sets by name, in the catalogue's order; the file is read once."""
    return dict(_read_catalog())


def find(name: str) -> CatalogEntry:
    """Returns the data set called ``name``.

    Raises:
        DataError: there is none of that name; the message offers near spellings.
    """
    known = _read_catalog()
    if name not in known:
        raise DataError(
            f"Expected the name of a data set in the catalogue, got {name!r}."
            f"{suggest(name, known)} `catalog.entries()` lists all {len(known)}."
        )
    return known[name]


def locate(entry: CatalogEntry) -> Path | None:
    """Returns the folder that holds the data set on this machine, or ``None``; uses no network.

    A folder counts when every required file is there; ``fetch`` also verifies what is in them. Of
    an inductive data set it is the training graph's folder, with the test graph's beside it.
    """
    for parent in _parents(entry):
        if all(_is_file(_path_under(parent, file)) for file in entry.required_files):
            return parent / entry.name
    return None


def fetch(
    entry: CatalogEntry,
    *,
    progress: ProgressCallback | None = None,
    policy: DownloadPolicy | None = None,
) -> Path:
    """Returns the folder ``locate`` names, all files verified; downloads what is nowhere.

    A downloaded file appears under its name only when it is whole and verified. Optional files are
    downloaded along with the required ones, but their absence is no error.

    Raises:
        DownloadError: a file is not the one expected, or can be neither found nor downloaded.
        StorageError: the cache cannot be written.
    """
    folder = locate(entry)
    parent = folder.parent if folder else cache_folder() / entry.kind
    missing: list[CatalogFile] = []
    for file in entry.files:
        path = _path_under(parent, file)
        if _is_file(path):
            _verify_local(file, path)
        else:
            missing.append(file)
    if folder is None:
        _complete_cache(missing, parent, progress, policy or DownloadPolicy())
    return parent / entry.name


def data_folder() -> Path | None:
    """Returns the folder that ``$KNOWFORMER_DATA`` names, or ``None`` when it is unset or empty."""
    value = os.environ.get(DATA_VARIABLE)
    return Path(value).expanduser() if value else None


def cache_folder() -> Path:
    """Returns where downloads are kept: ``$KNOWFORMER_CACHE``, or the system's place for caches."""
    value = os.environ.get(CACHE_VARIABLE)
    if value:
        return Path(value).expanduser()
    import pooch  # not at the top: importing it takes longer than reading the catalogue

    return Path(pooch.os_cache("knowformer"))


@cache
def _read_catalog() -> Mapping[str, CatalogEntry]:
    rows = json.loads(CATALOG_FILE.read_text(encoding="utf-8"))["entries"]
    return MappingProxyType({row["name"]: _build_entry(row) for row in rows})


def _build_entry(row: dict[str, Any]) -> CatalogEntry:
    test_graph = row.get("test_graph_counts")
    return CatalogEntry(
        name=row["name"],
        kind=row["kind"],
        embedded=row.get("embedded", False),
        counts=_build_counts(row["counts"]),
        test_graph_counts=_build_counts(test_graph) if test_graph else None,
        origin=row["origin"],
        licence=row["licence"],
        notes=tuple(row["notes"]),
        files=tuple(_build_file(**file) for file in row["files"]),
    )


def _build_counts(row: dict[str, Any]) -> GraphCounts:
    return GraphCounts(row["entities"], row["relations"], MappingProxyType(row["facts"]))


def _build_file(*, sources: list[str], **row: Any) -> CatalogFile:
    return CatalogFile(sources=tuple(sources), **row)


def _parents(entry: CatalogEntry) -> Iterator[Path]:
    """Yields the folders in which the data set's own folder may lie, in order of preference."""
    if entry.embedded:
        yield EMBEDDED_FOLDER
    data = data_folder()
    if data:
        yield data / entry.kind
    yield cache_folder() / entry.kind


def _path_under(parent: Path, file: CatalogFile) -> Path:
    _kind, folder, name = file.path.split("/")
    return parent / folder / name


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder we may not look into holds nothing for us
        return False


def _find_difference(file: CatalogFile, path: Path) -> tuple[str, str] | None:
    """Returns expected and found content in words, or ``None`` when they agree."""
    algorithm, expected = file.checksum
    with path.open("rb") as content:
        # md5 guards against damage here, not against malice; some systems forbid it otherwise.
        found = hashlib.file_digest(content, partial(hashlib.new, algorithm, usedforsecurity=False))
        size = content.seek(0, os.SEEK_END)
    if found.hexdigest() == expected and file.bytes in (None, size):
        return None
    expected_size = "" if file.bytes is None else f" ({file.bytes:,} bytes)"
    return f"{algorithm} {expected}{expected_size}", f"{found.hexdigest()} ({size:,} bytes)"


def _verify_local(file: CatalogFile, path: Path) -> None:
    try:
        difference = _find_difference(file, path)
    except OSError as error:
        fault = error.strerror or error
        raise DownloadError(f"Expected a readable file at {path}, got '{fault}'.") from error
    if difference:
        remedy = "Put the right file in its place"
        if path.is_relative_to(EMBEDDED_FOLDER):
            remedy = "Install knowformer again"
        elif file.sources:
            remedy += ", or remove it to have it downloaded again"
        raise DownloadError(f"Expected {difference[0]} in {path}, found {difference[1]}. {remedy}.")


def _explain_supply(file: CatalogFile) -> str:
    folder = data_folder() or Path("DIR")
    return f"put the file at {folder / file.path} and set {DATA_VARIABLE}={folder}"


def _complete_cache(
    files: list[CatalogFile],
    parent: Path,
    progress: ProgressCallback | None,
    policy: DownloadPolicy,
) -> None:
    """Brings files into the cache, the required ones first."""
    files = [file for file in files if not _copy_from_data(file, _path_under(parent, file))]
    for file in files:
        if not file.sources and not file.optional:
            raise DownloadError(
                f"Expected {file.path} on this machine, found none, and it is not offered for "
                f"download in this form; {_explain_supply(file)}."
            )
    for file in sorted(files, key=lambda file: file.optional):
        try:
            if file.sources:
                _download(file, _path_under(parent, file), progress, policy)
        except DownloadError as error:
            if not file.optional:
                raise
            _logger.info("Went on without an optional file: %s", error)


def _copy_from_data(file: CatalogFile, target: Path) -> bool:
    """Takes a file from ``$KNOWFORMER_DATA``, which may hold a part of a data set."""
    data = data_folder()
    if data is None or not _is_file(data / file.path):
        return False
    _verify_local(file, data / file.path)
    with atomic_path(target) as temporary:
        shutil.copyfile(data / file.path, temporary)
    return True


class _AttemptError(Exception):
    """One try at a download failed."""

    def __init__(self, source: str, reason: str, *, is_transient: bool) -> None:
        super().__init__(reason)
        self.source = source
        self.is_transient = is_transient


class _PoochProgress:
    """Speaks pooch's progress-bar protocol, and reports what has truly been written."""

    def __init__(self, callback: ProgressCallback, file: CatalogFile, output: BinaryIO) -> None:
        self.total = 0  # set by pooch to the length of one response, which may be compressed
        self._report = lambda: callback(file.path, output.tell(), file.bytes)

    def update(self, _num_bytes: int) -> None:
        self._report()

    def reset(self) -> None: ...

    def close(self) -> None: ...


def _download(
    file: CatalogFile, target: Path, progress: ProgressCallback | None, policy: DownloadPolicy
) -> None:
    for attempt in count(1):
        try:
            with atomic_path(target) as temporary:
                _receive(file, temporary, progress, policy.timeout_seconds)
                _check_received(file, temporary)
            return
        except _AttemptError as error:
            if attempt >= policy.attempts or not error.is_transient:
                tries = f" ({attempt} attempts)" if attempt > 1 else ""
                raise DownloadError(
                    f"Expected {file.path} from {error.source}, got {error}{tries}; nothing "
                    f"of it was kept. Try again later, or {_explain_supply(file)}."
                ) from error
        time.sleep(policy.wait_seconds * 2 ** (attempt - 1))


def _receive(
    file: CatalogFile, temporary: Path, progress: ProgressCallback | None, timeout_seconds: float
) -> None:
    import pooch
    import requests
    import urllib3

    with temporary.open("wb") as output, ExitStack() as responses:

        def close_at_end(response: requests.Response, **_: object) -> requests.Response:
            return responses.enter_context(response)  # pooch leaves it open when something fails

        # pooch documents "bool or an arbitrary progress bar object" and leaves it untyped.
        bar: Any = _PoochProgress(progress, file, output) if progress else False
        downloader = pooch.HTTPDownloader(
            bar, 1 << 16, timeout=timeout_seconds, hooks={"response": close_at_end}
        )
        for source in file.sources:
            try:
                downloader(source, output, None)
            # Inside atomic_path: a RequestException is an OSError, and would pass for a full disk.
            except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
                raise _explain_failure(error, source, timeout_seconds) from error


def _explain_failure(error: Exception, source: str, timeout_seconds: float) -> _AttemptError:
    import requests
    import urllib3

    if isinstance(error, requests.HTTPError) and error.response is not None:
        status = error.response.status_code
        reason = f"HTTP {status} {error.response.reason}"
        return _AttemptError(source, reason, is_transient=status >= 500 or status in (408, 429))
    reason = str(error)
    cause: BaseException | None = error
    while cause and reason == str(error):
        if isinstance(cause, TimeoutError | requests.Timeout | urllib3.exceptions.ReadTimeoutError):
            reason = f"no answer for {timeout_seconds:g} seconds"
        elif isinstance(cause, urllib3.exceptions.IncompleteRead):
            reason = "a connection that broke off before the end of the file"
        elif isinstance(cause, OSError) and cause.strerror:
            reason = f"'{cause.strerror}'"
        cause = cause.__cause__ or cause.__context__
    return _AttemptError(source, reason, is_transient=True)


def _check_received(file: CatalogFile, temporary: Path) -> None:
    difference = _find_difference(file, temporary)
    if difference:
        reason = f"{difference[1]} instead of {difference[0]}"
        is_short = temporary.stat().st_size < (file.bytes or 0)
        raise _AttemptError(" + ".join(file.sources), reason, is_transient=is_short)
