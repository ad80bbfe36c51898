import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from knowformer.data import catalog
from knowformer.data.catalog import CatalogEntry, CatalogFile, GraphCounts
from knowformer.errors import DataError, DownloadError
from knowformer.storage.triples_io import read_edges, read_triples

ALL_NAMES = sorted(catalog.entries())
EMBEDDED_NAMES = sorted(name for name, entry in catalog.entries().items() if entry.embedded)
DATA = os.environ.get("KNOWFORMER_DATA")
ROOT = Path(__file__).resolve().parents[3]

needs_data = pytest.mark.skipif(not DATA, reason="KNOWFORMER_DATA is not set")


def digest_of(file: CatalogFile, path: Path) -> str:
    return hashlib.new("sha256" if file.sha256 else "md5", path.read_bytes()).hexdigest()


def count_splits(folder: Path, splits: list[str]) -> GraphCounts:
    triples = {split: read_triples(folder / f"{split}.txt") for split in splits}
    together = [triple for split in triples.values() for triple in split]
    return GraphCounts(
        entities=len({head for head, _, _ in together} | {tail for _, _, tail in together}),
        relations=len({relation for _, relation, _ in together}),
        facts={split: len(facts) for split, facts in triples.items()},
    )


def test_the_catalogue_holds_the_benchmarks_of_the_paper_and_the_embedded_graphs() -> None:
    expected = {"fb15k-237", "wn18rr", "nell-995", "yago3-10", "umls", "umls-pykeen", "kinship"}
    expected |= {
        f"{name}_v{i}" for name in ("fb15k-237", "wn18rr", "nell-995") for i in range(1, 5)
    }
    expected |= {"nations", "family", "nl-100", "wk-100", "fb-100", "cora", "citeseer", "pubmed"}
    assert expected <= set(ALL_NAMES)
    assert EMBEDDED_NAMES == ["kinship", "nations", "umls-pykeen"]


def test_entries_hands_out_a_copy_that_cannot_spoil_the_catalogue() -> None:
    catalog.entries().clear()
    assert "umls" in catalog.entries()


@pytest.mark.parametrize("name", ALL_NAMES)
def test_an_entry_is_consistent(name: str) -> None:
    entry = catalog.find(name)
    assert entry.name == name
    assert entry.origin
    assert entry.licence
    assert entry.required_files
    folders = {f"{entry.kind}/{name}"}
    if entry.kind == "inductive":
        folders.add(f"inductive/{name}_ind")
    assert {file.path.rsplit("/", 1)[0] for file in entry.files} == folders
    assert len({file.path for file in entry.files}) == len(entry.files)
    has_other_test_graph = entry.kind in ("inductive", "fully-inductive")
    assert (entry.test_graph_counts is not None) == has_other_test_graph


@pytest.mark.parametrize("name", ALL_NAMES)
def test_every_file_has_a_checksum_a_size_and_pinned_addresses(name: str) -> None:
    for file in catalog.find(name).files:
        algorithm, digest = file.checksum
        assert re.fullmatch(r"[0-9a-f]+", digest)
        assert len(digest) == {"sha256": 64, "md5": 32}[algorithm]
        assert file.lines > 0
        assert file.bytes is None or file.bytes > file.lines
        for source in file.sources:
            assert re.fullmatch(
                r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/[\w./%-]+", source
            )


@pytest.mark.parametrize("name", ALL_NAMES)
def test_the_counts_are_the_line_counts_of_the_files(name: str) -> None:
    entry = catalog.find(name)
    lines = {file.path: file.lines for file in entry.required_files}
    expected = {}
    for counts, folder in (
        (entry.counts, name),
        (entry.test_graph_counts, f"{name}_ind" if entry.kind == "inductive" else name),
    ):
        if counts:
            facts = counts.facts.items()
            expected |= {f"{entry.kind}/{folder}/{split}.txt": number for split, number in facts}
    assert lines == expected


def test_the_two_umls_splits_hold_as_many_triples_and_warn_of_each_other() -> None:
    benchmark, embedded = catalog.find("umls"), catalog.find("umls-pykeen")
    for entry in (benchmark, embedded):
        assert sum(entry.counts.facts.values()) == 6_529
        assert any("not comparable" in note for note in entry.notes)
    assert benchmark.counts.facts != embedded.counts.facts


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("kinships", "'kinship'"), ("UMLS", "'umls'"), ("wn18rr_v5", "'wn18rr_v4'")],
)
def test_a_misspelt_name_is_answered_with_near_ones(misspelt: str, meant: str) -> None:
    with pytest.raises(DataError, match=f"got '{misspelt}'.*Did you mean .*{meant}") as caught:
        catalog.find(misspelt)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", EMBEDDED_NAMES)
def test_an_embedded_graph_needs_neither_data_folder_nor_cache(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KNOWFORMER_DATA", raising=False)
    monkeypatch.setenv("KNOWFORMER_CACHE", str(tmp_path))
    entry = catalog.find(name)
    folder = catalog.fetch(entry)
    assert folder == catalog.locate(entry) == catalog.EMBEDDED_FOLDER / name
    assert list(tmp_path.iterdir()) == []
    for file in entry.files:
        path = folder / Path(file.path).name
        assert digest_of(file, path) == file.sha256
    assert count_splits(folder, list(entry.counts.facts)) == entry.counts


def test_no_file_is_embedded_that_the_catalogue_does_not_know() -> None:
    known = {
        f"{name}/{Path(file.path).name}"
        for name in EMBEDDED_NAMES
        for file in catalog.find(name).files
    }
    found = {
        path.relative_to(catalog.EMBEDDED_FOLDER).as_posix()
        for path in catalog.EMBEDDED_FOLDER.rglob("*")
        if path.is_file()
    }
    assert found == known | {"ORIGIN.md"}


def make_entry(*, optional: bool = False) -> tuple[CatalogEntry, bytes]:
    content = b"a\tlikes\tb\n"
    digest = hashlib.sha256(content).hexdigest()
    files = [CatalogFile("transductive/tiny/train.txt", 1, len(content), (), digest)]
    if optional:
        files.append(
            CatalogFile("transductive/tiny/names.txt", 1, len(content), (), digest, optional=True)
        )
    entry = CatalogEntry(
        name="tiny",
        kind="transductive",
        embedded=False,
        counts=GraphCounts(2, 1, {"train": 1}),
        test_graph_counts=None,
        origin="here",
        licence="MIT",
        notes=(),
        files=tuple(files),
    )
    return entry, content


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    data, cache = tmp_path / "data", tmp_path / "cache"
    monkeypatch.setenv("KNOWFORMER_DATA", str(data))
    monkeypatch.setenv("KNOWFORMER_CACHE", str(cache))
    return data, cache


def put(root: Path, file: CatalogFile, content: bytes) -> Path:
    path = root / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_the_data_folder_goes_before_the_cache(folders: tuple[Path, Path]) -> None:
    entry, content = make_entry()
    data, cache = folders
    assert catalog.locate(entry) is None
    in_cache = put(cache, entry.files[0], content)
    assert catalog.locate(entry) == in_cache.parent
    in_data = put(data, entry.files[0], content)
    assert catalog.fetch(entry) == catalog.locate(entry) == in_data.parent


def test_an_empty_variable_counts_as_unset(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, content = make_entry()
    in_cache = put(folders[1], entry.files[0], content)
    monkeypatch.setenv("KNOWFORMER_DATA", "")
    assert catalog.data_folder() is None
    assert catalog.locate(entry) == in_cache.parent


def test_a_wrong_local_file_is_named_with_both_checksums(folders: tuple[Path, Path]) -> None:
    entry, content = make_entry()
    path = put(folders[0], entry.files[0], content[::-1])
    with pytest.raises(DownloadError) as caught:
        catalog.fetch(entry)
    message = str(caught.value)
    assert str(path) in message
    assert str(entry.files[0].sha256) in message
    assert hashlib.sha256(content[::-1]).hexdigest() in message
    assert caught.value.exit_code == 2


def test_a_missing_optional_file_is_no_error_but_a_wrong_one_is(
    folders: tuple[Path, Path],
) -> None:
    entry, content = make_entry(optional=True)
    folder = put(folders[0], entry.files[0], content).parent
    assert catalog.fetch(entry) == folder
    put(folders[0], entry.files[1], b"other")
    with pytest.raises(DownloadError, match=r"names\.txt"):
        catalog.fetch(entry)


def test_a_file_that_cannot_be_downloaded_is_asked_for(folders: tuple[Path, Path]) -> None:
    entry, _ = make_entry()
    with pytest.raises(
        DownloadError, match=r"put the file at .* and set KNOWFORMER_DATA="
    ) as caught:
        catalog.fetch(entry)
    assert str(folders[0] / "transductive" / "tiny" / "train.txt") in str(caught.value)


def test_an_import_is_silent_and_leaves_the_download_libraries_alone() -> None:
    program = (
        "import sys, knowformer.data.catalog as catalog; catalog.entries(); "
        "assert not {'pooch', 'requests'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.dataset
@needs_data
@pytest.mark.parametrize("name", sorted(set(ALL_NAMES) - set(EMBEDDED_NAMES)))
def test_the_files_of_the_data_folder_verify_and_agree_with_the_counts(name: str) -> None:
    entry = catalog.find(name)
    root = Path(str(DATA))
    for file in entry.files:
        path = root / file.path
        if path.exists():
            assert digest_of(file, path) == file.checksum[1]
            assert path.stat().st_size == file.bytes
            assert path.read_bytes().count(b"\n") == file.lines
    folder = root / entry.kind / name
    if not all((root / file.path).exists() for file in entry.required_files):
        pytest.skip(f"{folder} is not whole")
    assert catalog.fetch(entry) == folder
    if entry.kind == "homogeneous":
        edges = read_edges(folder / "edges.txt", "edge")
        nodes = {int(node) for edge in edges for node in (edge[0], edge[2])}
        assert entry.counts == GraphCounts(max(nodes) + 1, 1, {"edges": len(edges)})
        return
    assert count_splits(folder, list(entry.counts.facts)) == entry.counts
    if entry.test_graph_counts:
        second = folder.with_name(f"{name}_ind") if entry.kind == "inductive" else folder
        splits = list(entry.test_graph_counts.facts)
        assert count_splits(second, splits) == entry.test_graph_counts


@pytest.mark.dataset
@pytest.mark.slow
@needs_data
def test_the_catalogue_is_what_its_script_makes(tmp_path: Path) -> None:
    manifest = Path(str(DATA)).resolve() / "MANIFEST.tsv"
    if not manifest.exists():
        pytest.skip(f"{manifest} does not exist")
    made = tmp_path / "catalog.json"
    command = [sys.executable, "scripts/make_catalog.py", str(manifest), "--output", str(made)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert made.read_bytes() == catalog.CATALOG_FILE.read_bytes()
