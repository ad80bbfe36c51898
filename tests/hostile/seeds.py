"""Good files of every format, which fuzzers start from, and how they change them."""

import io
import random
from collections.abc import Callable

import pyarrow
import pyarrow.parquet

NAMES = ("a", "b\u00e9", "$x_1$", "a b, c", '"q"')
FACTS = [(head, "r", tail) for head in NAMES for tail in NAMES]

SPLICES = [b"\x00", b"\xff", b'"', b"\n", b"\t", b",", b"\\u", b"[", b"{", b"9" * 50,
           b"\xed\xa0\x80", b"nan", b"1e999", b"null", b"-1", b"true", b"\xef\xbb\xbf",
           b"\\ud800", b"\x1f\x8b", b"\xff\xff\xff\xff"]  # fmt: skip
LENGTH = 8  # bytes at the front of safetensors: how long the header is
NODE = "<http://a/{}>"


def good_files() -> dict[str, list[bytes]]:
    """Files by their format, and by what is read from them where that is a format of its own."""
    tabs = "".join("\t".join(fact) + "\n" for fact in FACTS)
    quoted = [[name.replace('"', '""') for name in fact] for fact in FACTS]
    commas = "".join(",".join(f'"{name}"' for name in fact) + "\n" for fact in quoted)
    pairs = "".join(f"{name}\tname of {name}\n" for name in NAMES)
    nodes = [tuple(NODE.format(number % 5 + place) for place in range(3)) for number in range(20)]
    lines = "".join(f"{h} {r} {t} .\n" for h, r, t in nodes)
    prefixed = '@prefix a: <http://a/> .\na:x a:r a:y, a:z ; a:s [ a:r (a:x "v"@en 1.5) ] .\n'
    texts = {
        "tsv": [tabs, f"head\trelation\ttail\n{tabs}"],
        "csv": [commas, f"head,relation,tail\n{commas}", tabs.replace("\t", ";")],
        "labels tsv": [pairs],
        "labels csv": ["".join(f"e{i},name {i}\n" for i in range(9))],
        "candidates tsv": ["\n".join(NAMES)],
        "candidates csv": ["a\n"],
        "dated": [
            "head,relation,tail,when\n" + "".join(f"e{i},r,e{i + 1},{when}\n" for i in range(9))
            for when in ("2024-02-29T23:59:59-23:59", "1700000000", "2024-05-01", "1e9")
        ],
        "jsonl": ['{"head": "a", "relation": "r", "tail": "\\u00e9"}\n' * 9,
                  '{"head": "a", "relation": null}\n{"relation": "r", "tail": 3}\n'],
        "ntriples": [lines, '<http://a/x> <http://a/r> "v\\u0041"@en .\n'],
        "nquads": [lines, lines.replace(" .", " <http://a/g> .")],
        "turtle": [prefixed, lines],
        "trig": [prefixed, "@prefix a: <http://a/> . a:g { a:x a:r a:y . }\n"],
        "rdfxml": ['<?xml version="1.0"?><rdf:RDF xmlns:a="http://a/" '
                   'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
                   '<rdf:Description rdf:about="http://a/x"><a:r rdf:resource="http://a/y"/>'
                   "<a:s>v</a:s></rdf:Description></rdf:RDF>"],
    }  # fmt: skip
    files = {kind: [text.encode() for text in each] for kind, each in texts.items()}
    return files | {"parquet": [_parquet("none"), _parquet("snappy")]}


def _parquet(compression: str) -> bytes:
    columns = dict(zip(("head", "relation", "tail"), zip(*FACTS, strict=True), strict=True))
    table = pyarrow.table({name: list(values) for name, values in columns.items()})
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, compression=compression)
    return file.getvalue()


def mutated(content: bytes, seed: int) -> bytes:
    """Returns the content with a few bytes cut, doubled, flipped or put in, by a seed.

    Of safetensors the header and the tensors change apart, and the header's length follows: else
    nearly every change would be found out by that length.
    """
    draw = random.Random(seed)
    header = int.from_bytes(content[:LENGTH], "little")
    if not content[LENGTH:].startswith(b'{"') or header > len(content):
        return _changed(content, draw)
    head, body = content[LENGTH : LENGTH + header], content[LENGTH + header :]
    if draw.randrange(2):
        head = _changed(head, draw)
    else:
        body = _changed(body, draw, (_flip, _flip, _overwrite))
    return len(head).to_bytes(LENGTH, "little") + head + body


Change = Callable[[bytearray, int, random.Random], None]


def _cut(content: bytearray, at: int, draw: random.Random) -> None:
    del content[at : at + draw.randrange(1, 20)]


def _double(content: bytearray, at: int, draw: random.Random) -> None:
    content[at:at] = content[at : at + draw.randrange(1, 40)]


def _flip(content: bytearray, at: int, draw: random.Random) -> None:
    if at < len(content):
        content[at] ^= 1 << draw.randrange(8)


def _splice(content: bytearray, at: int, draw: random.Random) -> None:
    content[at:at] = draw.choice(SPLICES)


def _overwrite(content: bytearray, at: int, draw: random.Random) -> None:
    new = draw.choice(SPLICES)[: len(content) - at]
    content[at : at + len(new)] = new


def _changed(
    content: bytes,
    draw: random.Random,
    changes: tuple[Change, ...] = (_cut, _double, _flip, _splice, _overwrite),
) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.randrange(1, 5)):
        draw.choice(changes)(changed, draw.randrange(len(changed) + 1), draw)
    return bytes(changed)
