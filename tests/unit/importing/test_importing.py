"""Files of every format to a data-set folder."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.data.loading import load_dataset
from knowformer.errors import DataError, StorageError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.importing import (
    Dialect,
    ImportOptions,
    SplitSizes,
    import_files,
    make_dataset,
    to_pandas,
)

Triple = tuple[str, str, str]


def facts(number: int = 80) -> list[Triple]:
    made = [(f"p{i % 13}", f"r{i % 3}", f"p{(i * 7 + 1) % 17}") for i in range(number)]
    return list(dict.fromkeys(made))


def all_facts(folder: Path) -> set[Triple]:
    frame = to_pandas(load_dataset(folder))
    return set(zip(frame["head"], frame["relation"], frame["tail"], strict=True))


def write_table(path: Path, rows: list[Triple], delimiter: str = "\t") -> Path:
    text = "".join(delimiter.join(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_json_lines(path: Path, rows: list[Triple]) -> Path:
    objects = (dict(zip(("head", "relation", "tail"), row, strict=True)) for row in rows)
    path.write_text("".join(json.dumps(content) + "\n" for content in objects))
    return path


def write_parquet(path: Path, rows: list[Triple]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    columns = dict(
        zip(("head", "relation", "tail"), map(list, zip(*rows, strict=True)), strict=True)
    )
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(columns), path)
    return path


def iri(name: str) -> str:
    return f"http://example.org/{name}"


def write_turtle(path: Path, rows: list[Triple]) -> Path:
    pytest.importorskip("pyoxigraph")
    path.write_text("".join(f"<{iri(h)}> <{iri(r)}> <{iri(t)}> .\n" for h, r, t in rows))
    return path


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("f.tsv", write_table),
        ("f.csv", lambda path, rows: write_table(path, rows, ",")),
        ("f.tsv.gz", write_table),
        ("f.jsonl", write_json_lines),
        ("f.parquet", write_parquet),
    ],
)
def test_what_goes_in_is_what_is_read_back(
    tmp_path: Path, name: str, write: Callable[[Path, list[Triple]], Path]
) -> None:
    result = import_files([write(tmp_path / name, facts())], tmp_path / "out")
    assert all_facts(tmp_path / "out") == set(facts())
    assert load_dataset(tmp_path / "out").same_as(result.dataset)
    stored = json.loads((tmp_path / "out" / "audit.json").read_text())
    assert stored == result.audit.model_dump(mode="json")
    assert (tmp_path / "out" / "audit.md").read_text().startswith("# Audit of out")


def test_a_result_is_told_in_a_line(tmp_path: Path) -> None:
    result = import_files(str(write_table(tmp_path / "f.tsv", facts())), tmp_path / "out")
    assert "Dataset(out: 17 entities, 3 relations, facts: " in repr(result)
    assert "\n" not in repr(result)


def test_several_files_are_joined_and_repeated_rows_counted(tmp_path: Path) -> None:
    one = write_table(tmp_path / "one.tsv", facts()[:50])
    two = write_table(tmp_path / "two.csv", facts()[40:], ";")
    result = import_files([one, two], tmp_path / "out")
    assert all_facts(tmp_path / "out") == set(facts())
    assert result.audit.repeated_rows == 10


def test_the_same_files_and_seed_give_the_same_bytes(tmp_path: Path) -> None:
    file = write_table(tmp_path / "f.tsv", facts())
    for out in ("a", "b", "c"):
        import_files([file], tmp_path / out, options=ImportOptions(seed=int(out == "c")))
    assert (tmp_path / "a/test.txt").read_bytes() == (tmp_path / "b/test.txt").read_bytes()
    assert (tmp_path / "a/test.txt").read_bytes() != (tmp_path / "c/test.txt").read_bytes()


def test_an_import_a_file_to_train_on_and_a_graph_are_split_alike(tmp_path: Path) -> None:
    file = write_table(tmp_path / "f.tsv", facts())
    imported = import_files(file, tmp_path / "out", options=ImportOptions(seed=3)).dataset
    assert load_dataset(file, seed=3).same_as(imported)
    assert make_dataset(KnowledgeGraph.from_file(file), seed=3).same_as(imported)
    assert not load_dataset(file, seed=4).same_as(imported)


NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r\ufeff"), min_size=1, max_size=4
).filter(lambda name: name.strip() != "")


@given(
    st.sets(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=20),
    st.sampled_from(["f.tsv", "f.csv"]),
)
def test_any_name_survives(
    tmp_path_factory: pytest.TempPathFactory, rows: set[Triple], name: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    more = [(f"{h}{i}", r, f"{t}{i}") for h, r, t in rows for i in range(4)] + facts()
    if name == "f.csv":
        import csv

        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("head", "relation", "tail"), *more])
    else:
        write_table(folder / name, more)
    options = ImportOptions(dialect=Dialect(header=name == "f.csv"))
    import_files([folder / name], folder / "out", options=options)
    assert all_facts(folder / "out") == set(more)


def test_labels_are_kept_with_the_data_set(tmp_path: Path) -> None:
    file = write_table(tmp_path / "f.tsv", facts())
    (tmp_path / "names.csv").write_text('id,name\np1,"Ann, the first"\nr0,likes\nnobody,No One\n')
    options = ImportOptions(labels=(tmp_path / "names.csv",))
    result = import_files([file], tmp_path / "out", options=options)
    labels = load_dataset(tmp_path / "out").labels
    assert dict(labels.entities) == {"p1": "Ann, the first"}
    assert dict(labels.relations) == {"r0": "likes"}
    assert any("1 of 17 entities" in note for note in result.notes)


def test_labels_are_read_from_any_kind_of_table_but_not_from_rdf(tmp_path: Path) -> None:
    file = write_table(tmp_path / "f.tsv", facts())
    (tmp_path / "names.jsonl").write_text('{"name": "Ann", "id": "p1"}\n')
    options = ImportOptions(labels=(tmp_path / "names.jsonl",))
    result = import_files([file], tmp_path / "out", options=options)
    assert dict(result.dataset.labels.entities) == {"p1": "Ann"}
    (tmp_path / "names.nt").write_text("<http://a/b> <http://a/c> <http://a/d> .\n")
    options = ImportOptions(labels=(tmp_path / "names.nt",))
    with pytest.raises(DataError, match=r"ids and names, got RDF in .*names\.nt"):
        import_files([file], tmp_path / "other", options=options)


def test_rdf_keeps_iris_shortens_names_and_counts_literals(tmp_path: Path) -> None:
    file = write_turtle(tmp_path / "f.ttl", facts())
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    with file.open("a") as more:
        more.write(f'<{iri("p1")}> {label} "Anne"@fr, "Ann"@en .\n')
        more.write(f"<{iri('p1')}> <{iri('age')}> 7 .\n[] <{iri('r0')}> <{iri('p1')}> .\n")
    result = import_files([file], tmp_path / "out")
    named = {(iri(h), iri(r), iri(t)) for h, r, t in facts()} | {("_:b0", iri("r0"), iri("p1"))}
    assert all_facts(tmp_path / "out") == named
    labels = load_dataset(tmp_path / "out").labels
    assert labels.entity(iri("p1")) == "Ann"
    assert labels.entity(iri("p2")) == "p2"
    assert any("3 triples with a literal were left out" in note for note in result.notes)
    options = ImportOptions(keep_literals=True)
    import_files([file], tmp_path / "all", options=options)
    assert any(tail.startswith('"Ann"') for _, _, tail in all_facts(tmp_path / "all"))


def test_rdf_xml_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pyoxigraph")
    rows = "".join(
        f'<rdf:Description rdf:about="{iri(h)}"><e:{r} rdf:resource="{iri(t)}"/>'
        "</rdf:Description>\n"
        for h, r, t in facts()
    )
    space = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://example.org/"'
    (tmp_path / "f.rdf").write_text(f"<rdf:RDF {space}>\n{rows}</rdf:RDF>\n")
    import_files([tmp_path / "f.rdf"], tmp_path / "out")
    assert all_facts(tmp_path / "out") == {(iri(h), iri(r), iri(t)) for h, r, t in facts()}


@pytest.mark.parametrize("form", ["{}", "20{:02d}-05-01", "20{:02d}-05-01T10:00:00Z"])
def test_a_temporal_split_trains_on_the_earliest(tmp_path: Path, form: str) -> None:
    rows = [(*fact, form.format(10 + i % 20)) for i, fact in enumerate(facts())]
    time_of = {row[:3]: row[3] for row in rows}
    (tmp_path / "f.csv").write_text(
        "head,relation,tail,when\n" + "".join(",".join(row) + "\n" for row in rows)
    )
    options = ImportOptions(dialect=Dialect(time="when"), sizes=SplitSizes(0.1, 0.2))
    result = import_files([tmp_path / "f.csv"], tmp_path / "out", options=options)
    frame = to_pandas(result.dataset)
    frame["when"] = [
        time_of[row] for row in zip(frame["head"], frame["relation"], frame["tail"], strict=True)
    ]
    spans = frame.groupby("split")["when"].agg(["min", "max"])
    assert spans.loc["train", "max"] < spans.loc["valid", "min"]
    assert spans.loc["valid", "max"] < spans.loc["test", "min"]


def test_a_temporal_split_without_anything_to_hold_out_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"a{i},r{i},b{i},{i}\n" for i in range(9))
    (tmp_path / "f.csv").write_text(rows)
    options = ImportOptions(dialect=Dialect(time="4"))
    with pytest.raises(DataError, match="leave `time` out"):
        import_files([tmp_path / "f.csv"], tmp_path / "out", options=options)


def test_no_leaks_keeps_facts_that_repeat_each_other_together(tmp_path: Path) -> None:
    rows = [(f"a{i % 50}", "contains", f"b{i * i % 37}") for i in range(400)]
    rows += [(t, "part_of", h) for h, _, t in rows]
    file = write_table(tmp_path / "f.tsv", rows)
    easy = import_files([file], tmp_path / "easy").audit
    assert easy.held_out["test"].leaked > 0.7 * easy.held_out["test"].facts
    assert next(f for f in easy.findings if f.topic == "leaks").level == "warning"
    fair = import_files([file], tmp_path / "fair", options=ImportOptions(no_leaks=True)).audit
    assert fair.held_out["test"].leaked == fair.held_out["valid"].leaked == 0
    assert fair.held_out["test"].facts > 0


def test_a_first_line_that_may_be_a_header_is_said(tmp_path: Path) -> None:
    file = write_table(tmp_path / "f.tsv", [("Kopf", "Beziehung", "Ende"), *facts()])
    result = import_files([file], tmp_path / "out")
    assert any("`header=True`" in note for note in result.notes)


def test_bad_rdf_is_passed_over_line_by_line_and_xml_to_its_first_error(tmp_path: Path) -> None:
    nt = write_turtle(tmp_path / "f.nt", facts())
    nt.write_text("oops .\n" + nt.read_text() + "oops .\n")
    (tmp_path / "f.rdf").write_text(f'{RDF_XML}<d:x d:about="a b"/>\n<d:x d:about="http://a/x"/>')
    options = ImportOptions(skip_bad=True)
    result = import_files([nt, tmp_path / "f.rdf"], tmp_path / "out", options=options)
    assert len(all_facts(tmp_path / "out")) == len(facts())
    places = [row.place for row in result.bad_rows.rows]
    assert places == [f"{nt}:1", f"{nt}:{len(facts()) + 2}", f"{tmp_path / 'f.rdf'}:2"]
    assert "reading ends here" in result.bad_rows.rows[-1].reason


def test_nothing_is_written_over_unless_asked(tmp_path: Path) -> None:
    file = write_table(tmp_path / "f.tsv", facts())
    import_files([file], tmp_path / "out")
    with pytest.raises(StorageError, match="`force=True`"):
        import_files([file], tmp_path / "out")
    import_files([file], tmp_path / "out", options=ImportOptions(seed=1), force=True)
    assert json.loads((tmp_path / "out/import.json").read_text())["seed"] == 1
    with pytest.raises(StorageError, match=r"into, found the file .*f\.tsv"):
        import_files([tmp_path / "no.tsv"], file / "deep" / "out")  # told before reading
    (tmp_path / "precious").mkdir()
    with pytest.raises(StorageError, match="an import made"):
        import_files([file], tmp_path / "precious", force=True)
    assert {path.name for path in tmp_path.iterdir()} == {"f.tsv", "out", "precious"}


def test_a_name_that_cannot_be_kept_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_bytes(b'a,b,c\na,b,"c\td"\n')
    with pytest.raises(DataError, match=r"without tabs.*f\.csv:2\."):
        import_files([tmp_path / "f.csv"], tmp_path / "out")
    (tmp_path / "f.csv").write_bytes(b"a,b,c\na,b,d\na,b,caf\xe9\n")
    with pytest.raises(DataError, match=r"byte 0xe9 at .*f\.csv:3\."):
        import_files([tmp_path / "f.csv"], tmp_path / "out")
    (tmp_path / "f.csv").write_bytes(b"a,b,c\na,b, \n")
    with pytest.raises(DataError, match=r"name as tail, got an empty one at .*f\.csv:2\."):
        import_files([tmp_path / "f.csv"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_parquet_of_wrong_types_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "f.parquet"
    parquet.write_table(pyarrow.table({"head": ["a"], "relation": [0.5], "tail": ["b"]}), path)
    with pytest.raises(DataError, match=r"'relation' of .*f\.parquet.*got double"):
        import_files([path], tmp_path / "out")
    parquet.write_table(
        pyarrow.table({"head": [1, None], "relation": ["r", "r"], "tail": [2, 3]}), path
    )
    with pytest.raises(DataError, match=r"'head', got none in row 2 of"):
        import_files([path], tmp_path / "out")
    options = ImportOptions(dialect=Dialect(columns=("haed", "relation", "tail")))
    with pytest.raises(DataError, match="mean 'head'"):
        import_files([path], tmp_path / "out", options=options)
    path.write_bytes(b"no parquet at all")
    with pytest.raises(DataError, match="Expected a whole Parquet file"):
        import_files([path], tmp_path / "out")


RDF_XML = '<d:RDF xmlns:d="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n'


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("f.nt", "<http://a/x> <http://a/p> <http://a/y> .\n<http://a/x> oops .\n", 2),
        ("f.ttl", "@prefix e: <http://e/> .\ne:a e:b e:c .\ne:a f:b e:c .\n", 3),
        ("f.rdf", '<?xml version="1.0"?>\n<a>\n<b>\n</a>\n', 2),
        ("f.rdf", RDF_XML + '<d:x d:about="http://a/x">\n<d:y d:resource="a b"/>', 3),
        ("f.rdf", RDF_XML + '<d:x d:about="http://a/x">\n\n</d:z></d:RDF>', 4),
    ],
)
def test_malformed_rdf_is_refused_with_its_line(
    tmp_path: Path, name: str, content: str, line: int
) -> None:
    pytest.importorskip("pyoxigraph")
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=rf"well-formed RDF.*{name}:{line}\."):
        import_files([tmp_path / name], tmp_path / "out")
    assert not (tmp_path / "out").exists()
