"""RDF (N-Triples, Turtle, RDF/XML and kin) to rows; needs pyoxigraph, the extra ``rdf``.

IRIs are ids as they are, each with a short readable name. Literals are no entities: they are
counted and left out, except that names (rdfs:label and the like) become the readable names of what
they name. Blank nodes are numbered by first appearance: reading twice gives the same ids.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import unquote

from knowformer.data.readers.byte_streams import open_source
from knowformer.data.readers.rows import BadRows, ByteProgress, Chunk, place
from knowformer.errors import MissingPackageError

if TYPE_CHECKING:
    import pyoxigraph

TRIPLES_PER_CHUNK = 1024

FORMATS = {
    "ntriples": "N_TRIPLES",
    "turtle": "TURTLE",
    "rdfxml": "RDF_XML",
    "nquads": "N_QUADS",
    "trig": "TRIG",
}

# What the reader says before it says what is wrong; the line is told anyway.
_PLACE = re.compile(r"^Parser error at line \d+ (between columns \d+ and \d+|column \d+): ")

NAMING = frozenset(
    {
        "http://www.w3.org/2000/01/rdf-schema#label",
        "http://www.w3.org/2004/02/skos/core#prefLabel",
        "http://schema.org/name",
        "https://schema.org/name",
        "http://xmlns.com/foaf/0.1/name",
        "http://purl.org/dc/terms/title",
    }
)


class RdfReader:
    """Reads RDF files one after the other, and keeps what their literals said."""

    def __init__(self, *, bad_rows: BadRows, keep_literals: bool = False) -> None:
        self._bad_rows = bad_rows
        self._keep_literals = keep_literals
        self._blank_nodes: dict[tuple[Path, str], str] = {}
        self._foreign: set[str] = set()  # whose name so far is in another language than English
        self.labels: dict[str, str] = {}
        """Readable names that literals gave, by IRI."""
        self.left_out: Counter[str] = Counter()
        """How many literals were left out, by predicate."""

    def read(
        self, path: Path, kind: str, *, progress: ByteProgress | None = None
    ) -> Iterator[Chunk]:
        """Yields the triples between IRIs and blank nodes, some at a time.

        Raises:
            DataError: malformed RDF, with its line, unless bad rows are passed over.
            MissingPackageError: pyoxigraph is not installed.
        """
        try:
            import pyoxigraph
        except ImportError:
            raise MissingPackageError("pyoxigraph", "rdf", f"read {path}") from None
        with open_source(path) as source:
            chosen = getattr(pyoxigraph.RdfFormat, FORMATS[kind])
            lines = LineByLine(source.content)
            content = cast(BinaryIO, lines) if kind == "rdfxml" else source.content
            parser = pyoxigraph.parse(content, chosen)
            rows: list[tuple[str, str, str]] = []
            numbers: list[int] = []
            for number, quad in enumerate(self._quads(parser, path, kind, lines), start=1):
                row = self._row(path, quad)
                if row is not None:
                    rows.append(row)
                    numbers.append(number)
                if len(rows) >= TRIPLES_PER_CHUNK:
                    yield _chunk(path, rows, numbers)
                    rows, numbers = [], []
                    if progress:
                        progress(source.bytes_read())
            yield _chunk(path, rows, numbers)

    def _quads(
        self, parser: "Iterable[pyoxigraph.Quad]", path: Path, kind: str, lines: "LineByLine"
    ) -> Iterator["pyoxigraph.Quad"]:
        quads = iter(parser)
        while True:
            try:
                yield from quads
                return
            except SyntaxError as error:
                said = _PLACE.sub("", str(error.msg)).rstrip(".")
                where = place(path, error.lineno or lines.number)
                # Unlike lines, nested elements leave nothing to go on with.
                is_end = kind == "rdfxml"
                ends = " (reading ends here)" if is_end else ""
                self._bad_rows.add(where, f"Expected well-formed RDF, got the error {said!r}{ends}")
                if is_end:
                    return

    def _row(self, path: Path, quad: "pyoxigraph.Quad") -> tuple[str, str, str] | None:
        predicate, tail = quad.predicate.value, quad.object
        head = self._name(path, quad.subject)
        kind = type(tail).__name__
        if kind == "Literal":
            if predicate in NAMING:
                self._keep_label(head, tail)
            if not self._keep_literals:
                self.left_out[predicate] += 1
                return None
            return head, predicate, str(tail)  # as N-Triples writes it: one line, no tabs
        if kind == "Triple":
            self.left_out[predicate] += 1
            return None
        return head, predicate, self._name(path, tail)

    def _name(self, path: Path, node: Any) -> str:
        kind = type(node).__name__
        if kind == "NamedNode":
            return node.value
        key = (path, node.value)
        if key not in self._blank_nodes:
            self._blank_nodes[key] = f"_:b{len(self._blank_nodes)}"
        return self._blank_nodes[key]

    def _keep_label(self, entity: str, literal: Any) -> None:
        """The first name wins, an English or unmarked one before others."""
        text = " ".join(literal.value.split())
        is_preferred = (literal.language or "en").split("-")[0] == "en"
        if text and (entity not in self.labels or (is_preferred and entity in self._foreign)):
            self.labels[entity] = text
            (self._foreign.discard if is_preferred else self._foreign.add)(entity)


def _chunk(path: Path, rows: list[tuple[str, str, str]], numbers: list[int]) -> Chunk:
    columns = tuple(zip(*rows, strict=True)) if rows else ((), (), ())
    return Chunk(path, columns, numbers, "triple")


class LineByLine:
    """Hands a file on a line at a time, and counts.

    The reader of RDF/XML tells no line. When it stops at an error, it has read no further than the
    line of that error.
    """

    def __init__(self, content: BinaryIO) -> None:
        self._content = content
        self._is_whole = True
        self.number = 0
        """Of the line that was handed on last."""

    def read(self, size: int = -1, /) -> bytes:
        """Returns the next line, or a part of it that is no longer than ``size``."""
        line = self._content.readline(size)
        self.number += bool(line) and self._is_whole
        self._is_whole = line.endswith(b"\n")
        return line


def short_names(iris: Iterable[str], labels: dict[str, str]) -> dict[str, str]:
    """Returns a readable name per IRI: its label, else its last part; two parts if that is shared.

    Args:
        iris: ids; those that are no IRIs are passed over.
        labels: readable names that are known.
    """
    wanted = [iri for iri in iris if "://" in iri or iri.startswith("urn:")]
    last = {iri: _last_parts(iri, 1) for iri in wanted if iri not in labels}
    shared = Counter(last.values())
    names = {iri: name if shared[name] == 1 else _last_parts(iri, 2) for iri, name in last.items()}
    return {iri: labels.get(iri) or names[iri] for iri in wanted}


def _last_parts(iri: str, count: int) -> str:
    parts = [part for part in iri.replace("#", "/").split("/") if part]
    name = " ".join(unquote("/".join(parts[-count:])).replace("_", " ").split())
    return name or iri
