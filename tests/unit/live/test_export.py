"""Live facts and decisions as files, read again by what reads such files."""

import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet
import pyoxigraph
import pytest

from knowformer import Reasoner
from knowformer.errors import ConfigError
from knowformer.live.decisions import Decision
from knowformer.live.export import MEDIA_TYPES, export_decisions, export_facts
from knowformer.live.facts import Change
from knowformer.live.snapshots import LiveGraph
from knowformer.live.upload import upload

ODD = 'tab\t, break\n, "quoted" \\ <>, \u00e9, $(rm)'
IRI = "http://example.org/Bob"
LABEL = pyoxigraph.NamedNode("http://www.w3.org/2000/01/rdf-schema#label")


@pytest.fixture
def live(reasoner: Reasoner, tmp_path: Path) -> Iterator[LiveGraph]:
    with closing(LiveGraph.open(reasoner, tmp_path / "live.sqlite")) as opened:
        graph = opened.snapshot().graph
        entities, relations = graph.entities.names, graph.relations.names
        head, relation, tail = graph.facts[0].tolist()
        base = (entities[head], relations[relation], entities[tail])
        opened.change([Change(ODD, "next", IRI, why="seen"), Change(*base, "remove")], author="Ann")
        # Back and forth: nothing of these two is left.
        opened.change([Change("place00", "skip", "guest"), Change(*base)])
        opened.undo(3)
        opened.change([Change(*base, "remove", why="wrong")])
        opened.decide(Decision(ODD, "next", "place03", "reject", "no\n", 2, 0.25), author="Ann")
        opened.decide(Decision(ODD, "next", IRI, "unsure"))
        opened.undo_decision(2)
        yield opened


def read_parquet(chunks: Iterator[bytes]) -> list[dict[str, object]]:
    return pyarrow.parquet.read_table(io.BytesIO(b"".join(chunks))).to_pylist()


def test_tables_hold_what_tells_the_graph_from_the_one_loaded(live: LiveGraph) -> None:
    added, removed = read_parquet(export_facts(live, "parquet"))
    assert (added["id"], added["action"], added["head"], added["tail"]) == (1, "add", ODD, IRI)
    assert (added["author"], added["why"], added["source"]) == ("Ann", "seen", None)
    assert (removed["id"], removed["action"], removed["why"]) == (6, "remove", "wrong")
    header, first, second = b"".join(export_facts(live, "tsv")).decode().splitlines()
    assert header.split("\t") == list(added)
    assert first.split("\t")[2] == ODD.replace("\\", "\\\\").replace("\t", "\\t").replace(
        "\n", "\\n"
    )
    assert second.split("\t")[:2] == ["6", "remove"]


def test_an_export_can_be_uploaded_again(live: LiveGraph) -> None:
    content = b"".join(export_facts(live, "tsv"))
    result = upload(live, content, kind="tsv", dry_run=True)
    assert result.rejected == []
    assert (result.accepted, result.unchanged) == (1, 1)  # the name with a tab is another one


def test_triples_are_read_by_other_programs_with_names_as_labels(live: LiveGraph) -> None:
    content = b"".join(export_facts(live, "nt"))
    triples = list(pyoxigraph.parse(content, pyoxigraph.RdfFormat.N_TRIPLES))
    names = {str(t.subject.value): t.object.value for t in triples if t.predicate == LABEL}
    (fact,) = (t for t in triples if t.predicate != LABEL)
    assert names[fact.subject.value] == ODD
    assert names[fact.predicate.value] == "is followed by"
    assert fact.object == pyoxigraph.NamedNode(IRI)
    assert IRI not in names


def test_decisions_are_exported_those_taken_back_marked_or_left_out(live: LiveGraph) -> None:
    first, second = read_parquet(export_decisions(live, "parquet"))
    assert (first["verdict"], first["note"], first["rank"]) == ("reject", "no\n", 2)
    assert (first["probability"], first["undone"]) == (0.25, None)
    assert second["undone"] is not None
    assert len(b"".join(export_decisions(live, "tsv")).splitlines()) == 3
    triples = list(
        pyoxigraph.parse(b"".join(export_decisions(live, "nt")), pyoxigraph.RdfFormat.N_TRIPLES)
    )
    nodes = {t.subject.value for t in triples if t.predicate.value.endswith("#subject")}
    assert nodes == {"urn:knowformer:decision:1"}
    values = {t.predicate.value.rpartition(":")[2]: t.object.value for t in triples}
    assert (values["verdict"], values["note"], values["rank"]) == ("reject", "no\n", "2")
    with pytest.raises(ConfigError, match="Expected tsv, parquet, nt as format, got 'xml'"):
        export_decisions(live, "xml")  # pyright: ignore
    assert set(MEDIA_TYPES) == {"tsv", "parquet", "nt"}
