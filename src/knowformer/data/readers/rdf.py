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
from knowformer.data.readers.reading import Reading
from knowformer.data.readers.rows import Chunk, place
from knowformer.errors import require_package

if TYPE_CHECKING:
    import pyoxigraph

TRIPLES_PER_CHUNK = 1024

# What the parser says before it says what is wrong; the line is told anyway.
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


def read_rdf(path: Path, reading: Reading, *, syntax: str) -> Iterator[Chunk]:
    """Yields the triples between IRIs and blank nodes, some at a time.

    Args:
        path: the file.
        reading: how to read it, and where to report.
        syntax: a name of ``pyoxigraph.RdfFormat``.

    Raises:
        DataError: malformed RDF, with its line, unless bad rows are skipped.
        MissingPackageError: pyoxigraph is not installed.
    """
    require_package("pyoxigraph", extra="rdf", purpose=f"read {path}")
    import pyoxigraph

    is_xml = syntax == "RDF_XML"
    names = _NodeNames(reading.blank_nodes)
    with open_source(path) as source:
        lines = LineByLine(source.content)
        content = cast(BinaryIO, lines) if is_xml else source.content
        parser = pyoxigraph.parse(content, getattr(pyoxigraph.RdfFormat, syntax))
        rows: list[tuple[str, str, str]] = []
        numbers: list[int] = []
        quads = _well_formed(parser, path, reading, lines if is_xml else None)
        for number, quad in enumerate(quads, start=1):
            row = _row(quad, names, reading)
            if row is not None:
                rows.append(row)
                numbers.append(number)
            if len(rows) >= TRIPLES_PER_CHUNK:
                yield _chunk(path, rows, numbers)
                rows, numbers = [], []
                reading.progress(source.bytes_read())
        yield _chunk(path, rows, numbers)


def _well_formed(
    parser: "Iterable[pyoxigraph.Quad]",
    path: Path,
    reading: Reading,
    xml: "LineByLine | None",
) -> Iterator["pyoxigraph.Quad"]:
    """Yields the quads that can be parsed; XML ends at its first error, other syntaxes go on.

    Unlike lines, nested elements leave nothing to go on with.
    """
    quads = iter(parser)
    while True:
        try:
            yield from quads
            return
        except SyntaxError as error:
            fault = _PLACE.sub("", str(error.msg)).rstrip(".")
            line = error.lineno or (xml.number if xml else 1)
            ends = " (reading ends here)" if xml else ""
            reason = f"Expected well-formed RDF, got the error {fault!r}{ends}"
            reading.bad_rows.add(place(path, line), reason)
            if xml:
                return


def _row(
    quad: "pyoxigraph.Quad", names: "_NodeNames", reading: Reading
) -> tuple[str, str, str] | None:
    predicate, tail = quad.predicate.value, quad.object
    head = names.of(quad.subject)
    kind = type(tail).__name__
    if kind == "Literal":
        literal: Any = tail
        if predicate in NAMING:
            is_english = (literal.language or "en").split("-")[0] == "en"
            reading.labels.add(head, literal.value, is_preferred=is_english)
        if reading.keep_literals:
            return head, predicate, str(tail)  # as N-Triples writes it: one line, no tabs
    if kind in {"Literal", "Triple"}:
        reading.left_out[predicate] += 1
        return None
    return head, predicate, names.of(tail)


class _NodeNames:
    """Names of one file's nodes: IRIs as they are, blank nodes by number."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._blank_nodes: dict[str, str] = {}

    def of(self, node: Any) -> str:
        if type(node).__name__ == "NamedNode":
            return node.value
        if node.value not in self._blank_nodes:
            self._blank_nodes[node.value] = f"_:b{next(self._numbers)}"
        return self._blank_nodes[node.value]


def _chunk(path: Path, rows: list[tuple[str, str, str]], numbers: list[int]) -> Chunk:
    columns = tuple(zip(*rows, strict=True)) if rows else ((), (), ())
    return Chunk(path, columns, numbers, "triple")


class LineByLine:
    """A file that is read one line at a time and counts them.

    The parser of RDF/XML does not say where it failed; fed by lines, it fails on the last one read.
    """

    def __init__(self, content: BinaryIO) -> None:
        self._content = content
        self._is_whole = True
        self.number = 0
        """The line that was read last."""

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
