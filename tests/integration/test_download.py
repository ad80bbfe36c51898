"""Downloads against a real HTTP server on this machine, good and bad."""

import hashlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from knowformer.data import catalog
from knowformer.data.catalog import CatalogEntry, CatalogFile, DownloadPolicy, GraphCounts
from knowformer.errors import DownloadError, StorageError

TRAIN = "".join(f"entity{i}\tnear\tentity{i + 1}\n" for i in range(20_000)).encode()
TEST = "".join(f"entity{i}\tnear\tentity{i + 2}\n" for i in range(50)).encode()
QUICK = DownloadPolicy(timeout_seconds=5.0, attempts=2, wait_seconds=0.01)


class FileServer(ThreadingHTTPServer):
    """Serves ``pages``; ``faults`` says how often a path misbehaves before it is served well."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FileHandler)
        self.pages: dict[str, bytes] = {}
        self.faults: dict[str, tuple[str, int]] = {}
        self.requests: list[str] = []
        self.released = threading.Event()

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


class FileHandler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        fault, left = self.server.faults.get(self.path, ("", 0))
        if left > 0:
            self.server.faults[self.path] = (fault, left - 1)
        content = self.server.pages.get(self.path)
        if content is None:
            self.send_error(404)
        elif left <= 0:
            self.send(content, len(content))
        elif fault == "error":
            self.send_error(503)
        elif fault == "truncate":
            self.send(content[: len(content) // 2], len(content))
        elif fault == "truncate-unsaid":
            self.send(content[: len(content) // 2], None)
        elif fault == "hang":
            self.server.released.wait(20)
        elif fault == "hang-midway":
            self.send(content[:1000], len(content))
            self.server.released.wait(20)
        else:
            self.send(b"x" * len(content), len(content))

    def send(self, content: bytes, announced: int | None) -> None:
        self.send_response(200)
        if announced is not None:
            self.send_header("Content-Length", str(announced))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KNOWFORMER_DATA", raising=False)
    monkeypatch.setenv("KNOWFORMER_CACHE", str(tmp_path / "cache"))
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(variable, "127.0.0.1")
    return tmp_path / "cache"


def make_file(path: str, content: bytes, *sources: str, optional: bool = False) -> CatalogFile:
    return CatalogFile(
        path=path,
        lines=content.count(b"\n"),
        bytes=len(content),
        sources=sources,
        sha256=hashlib.sha256(content).hexdigest(),
        optional=optional,
    )


def make_entry(*files: CatalogFile) -> CatalogEntry:
    kind, name = files[0].path.split("/")[:2]
    return CatalogEntry(
        name=name,
        kind="inductive" if kind == "inductive" else "transductive",
        embedded=False,
        counts=GraphCounts(1, 1, {"train": 1}),
        test_graph_counts=None,
        origin="a test",
        licence="MIT",
        notes=(),
        files=files,
    )


def train_entry(server: FileServer) -> CatalogEntry:
    server.pages["/train.txt"] = TRAIN
    return make_entry(make_file("transductive/path/train.txt", TRAIN, server.address("/train.txt")))


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def assert_fails_cleanly(entry: CatalogEntry, cache: Path, match: str) -> DownloadError:
    with pytest.raises(DownloadError, match=match) as caught:
        catalog.fetch(entry, policy=QUICK)
    message = str(caught.value)
    assert entry.files[0].path in message
    assert "KNOWFORMER_DATA" in message
    assert "\n" not in message
    assert caught.value.exit_code == 2
    assert files_in(cache) == []
    assert catalog.locate(entry) is None
    return caught.value


def assert_good_download_follows(server: FileServer, entry: CatalogEntry) -> None:
    server.faults.clear()
    folder = catalog.fetch(entry, policy=QUICK)
    assert (folder / "train.txt").read_bytes() == TRAIN
    assert files_in(folder) == [folder / "train.txt"]


def test_a_data_set_arrives_whole_and_is_not_downloaded_twice(
    server: FileServer, cache: Path
) -> None:
    server.pages |= {"/train.txt": TRAIN, "/ind%20test.txt": TEST}
    entry = make_entry(
        make_file("inductive/path_v1/train.txt", TRAIN, server.address("/train.txt")),
        make_file("inductive/path_v1_ind/test.txt", TEST, server.address("/ind%20test.txt")),
    )
    folder = catalog.fetch(entry, policy=QUICK)
    assert folder == cache / "inductive" / "path_v1"
    assert (folder / "train.txt").read_bytes() == TRAIN
    assert (cache / "inductive" / "path_v1_ind" / "test.txt").read_bytes() == TEST
    assert len(files_in(cache)) == 2
    assert catalog.fetch(entry, policy=QUICK) == catalog.locate(entry) == folder
    assert server.requests == ["/train.txt", "/ind%20test.txt"]


def test_parts_are_put_together_in_order(server: FileServer, cache: Path) -> None:
    server.pages |= {"/facts.txt": TRAIN, "/train.txt": TEST}
    parts = (server.address("/facts.txt"), server.address("/train.txt"))
    entry = make_entry(make_file("transductive/path/train.txt", TRAIN + TEST, *parts))
    folder = catalog.fetch(entry, policy=QUICK)
    assert files_in(cache) == [folder / "train.txt"]
    assert (folder / "train.txt").read_bytes() == TRAIN + TEST


def test_a_failing_second_part_leaves_nothing_of_the_first(server: FileServer, cache: Path) -> None:
    server.pages["/facts.txt"] = TRAIN
    parts = (server.address("/facts.txt"), server.address("/train.txt"))
    entry = make_entry(make_file("transductive/path/train.txt", TRAIN + TEST, *parts))
    error = assert_fails_cleanly(entry, cache, "HTTP 404")
    assert parts[1] in str(error)


def test_only_what_is_missing_is_downloaded(server: FileServer, cache: Path) -> None:
    server.pages |= {"/train.txt": TRAIN}
    entry = make_entry(
        make_file("transductive/path/train.txt", TRAIN, server.address("/train.txt")),
        make_file("transductive/path/test.txt", TEST, server.address("/test.txt")),
    )
    with pytest.raises(DownloadError, match=r"path/test\.txt .*HTTP 404"):
        catalog.fetch(entry, policy=QUICK)
    assert files_in(cache) == [cache / "transductive" / "path" / "train.txt"]
    assert catalog.locate(entry) is None
    server.pages["/test.txt"] = TEST
    catalog.fetch(entry, policy=QUICK)
    assert server.requests == ["/train.txt", "/test.txt", "/test.txt"]


def test_a_part_of_the_data_set_is_taken_from_the_data_folder(
    server: FileServer, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supplied = tmp_path / "data" / "transductive" / "path" / "train.txt"
    supplied.parent.mkdir(parents=True)
    supplied.write_bytes(TRAIN)
    monkeypatch.setenv("KNOWFORMER_DATA", str(tmp_path / "data"))
    server.pages["/test.txt"] = TEST
    entry = make_entry(
        make_file("transductive/path/train.txt", TRAIN),
        make_file("transductive/path/test.txt", TEST, server.address("/test.txt")),
    )
    folder = catalog.fetch(entry, policy=QUICK)
    assert folder == cache / "transductive" / "path"
    assert [path.read_bytes() for path in files_in(folder)] == [TEST, TRAIN]


def test_optional_files_come_along_when_they_can(server: FileServer, cache: Path) -> None:
    server.pages |= {"/train.txt": TRAIN, "/names.txt": TEST}
    there, absent, unoffered = (
        make_file("transductive/path/names.txt", TEST, server.address("/names.txt"), optional=True),
        make_file("transductive/path/more.txt", TEST, server.address("/more.txt"), optional=True),
        make_file("transductive/path/none.txt", TEST, optional=True),
    )
    train = make_file("transductive/path/train.txt", TRAIN, server.address("/train.txt"))
    catalog.fetch(make_entry(absent, there, unoffered, train), policy=QUICK)
    assert [path.name for path in files_in(cache)] == ["names.txt", "train.txt"]
    assert server.requests[0] == "/train.txt"


def test_progress_ends_at_the_size_of_the_file(server: FileServer, cache: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []

    def record(path: str, done: int, total: int | None) -> None:
        seen.append((path, done, total))

    folder = catalog.fetch(train_entry(server), progress=record, policy=QUICK)
    assert folder.is_relative_to(cache)
    assert {(path, total) for path, _, total in seen} == {
        ("transductive/path/train.txt", len(TRAIN))
    }
    done = [done for _, done, _ in seen]
    assert done == sorted(done)
    assert len(set(done)) > 2
    assert done[-1] == len(TRAIN)


def test_an_interrupted_download_leaves_nothing_behind(server: FileServer, cache: Path) -> None:
    def interrupt(_path: str, done: int, _total: int | None) -> None:
        if done > 0:
            raise KeyboardInterrupt

    entry = train_entry(server)
    with pytest.raises(KeyboardInterrupt):
        catalog.fetch(entry, progress=interrupt, policy=QUICK)
    assert files_in(cache) == []
    assert_good_download_follows(server, entry)


@pytest.mark.parametrize("fault", ["truncate", "truncate-unsaid"])
def test_a_truncated_body_is_refused(server: FileServer, cache: Path, fault: str) -> None:
    entry = train_entry(server)
    server.faults["/train.txt"] = (fault, 99)
    match = "broke off" if fault == "truncate" else f"{len(TRAIN) // 2:,} bytes"
    assert_fails_cleanly(entry, cache, match)
    assert len(server.requests) == QUICK.attempts
    assert_good_download_follows(server, entry)


def test_another_file_of_the_same_size_is_refused(server: FileServer, cache: Path) -> None:
    entry = train_entry(server)
    server.faults["/train.txt"] = ("other", 99)
    error = assert_fails_cleanly(entry, cache, str(entry.files[0].sha256))
    assert hashlib.sha256(b"x" * len(TRAIN)).hexdigest() in str(error)
    assert len(server.requests) == 1
    assert_good_download_follows(server, entry)


def test_a_missing_page_is_not_asked_for_twice(server: FileServer, cache: Path) -> None:
    entry = train_entry(server)
    server.pages.clear()
    error = assert_fails_cleanly(entry, cache, "HTTP 404 Not Found")
    assert server.address("/train.txt") in str(error)
    assert len(server.requests) == 1
    server.pages["/train.txt"] = TRAIN
    assert_good_download_follows(server, entry)


def test_a_refused_connection_is_told_as_such(server: FileServer, cache: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed_port = listener.getsockname()[1]
    address = f"http://127.0.0.1:{closed_port}/train.txt"
    file = make_file("transductive/path/train.txt", TRAIN, address)
    assert_fails_cleanly(make_entry(file), cache, "refused.*2 attempts")
    assert_good_download_follows(server, train_entry(server))


@pytest.mark.parametrize("fault", ["hang", "hang-midway"])
def test_a_silent_server_is_given_up_after_the_timeout(
    server: FileServer, cache: Path, fault: str
) -> None:
    entry = train_entry(server)
    server.faults["/train.txt"] = (fault, 99)
    impatient = DownloadPolicy(timeout_seconds=0.2, attempts=2, wait_seconds=0.01)
    with pytest.raises(DownloadError, match=r"no answer for 0\.2 seconds"):
        catalog.fetch(entry, policy=impatient)
    assert files_in(cache) == []
    assert len(server.requests) == 2
    assert_good_download_follows(server, entry)


@pytest.mark.parametrize("fault", ["error", "truncate", "truncate-unsaid"])
def test_a_passing_fault_is_overcome_by_a_second_try(
    server: FileServer, cache: Path, fault: str
) -> None:
    entry = train_entry(server)
    server.faults["/train.txt"] = (fault, 1)
    folder = catalog.fetch(entry, policy=QUICK)
    assert (folder / "train.txt").read_bytes() == TRAIN
    assert files_in(cache) == [folder / "train.txt"]
    assert len(server.requests) == 2


def test_a_damaged_cached_file_is_reported_and_not_replaced_in_silence(
    server: FileServer, cache: Path
) -> None:
    entry = train_entry(server)
    path = catalog.fetch(entry, policy=QUICK) / "train.txt"
    path.write_bytes(TRAIN[:-5])
    with pytest.raises(DownloadError, match="remove it to have it downloaded again") as caught:
        catalog.fetch(entry, policy=QUICK)
    assert str(path) in str(caught.value)
    path.unlink()
    assert_good_download_follows(server, entry)
    assert path.is_relative_to(cache)


def test_a_file_known_by_md5_alone_is_verified_too(server: FileServer, cache: Path) -> None:
    server.pages["/train.txt"] = TRAIN
    file = CatalogFile(
        path="transductive/path/train.txt",
        lines=TRAIN.count(b"\n"),
        bytes=None,
        sources=(server.address("/train.txt"),),
        md5=hashlib.md5(TRAIN).hexdigest(),
    )
    server.faults["/train.txt"] = ("other", 1)
    assert_fails_cleanly(make_entry(file), cache, str(file.md5))
    assert_good_download_follows(server, make_entry(file))


def test_a_cache_that_cannot_be_written_is_a_storage_error(server: FileServer, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="Expected to write"):
        catalog.fetch(train_entry(server), policy=QUICK)
