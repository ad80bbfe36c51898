"""Files, names, settings and command lines that are odd."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.hostile.case import Case, Place
from tests.hostile.run_folders import ANSWER

GOOD = "".join(f"e{i}\tr\te{i + 1}\n" for i in range(40))

CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "blank": b"\n\n \n",
    "zeros": bytes(5000),
    "noise": bytes(range(256)) * 20,
    "UTF-16": GOOD.encode("utf-16"),
    "Latin-1": GOOD.replace("e1", "\xe9").encode("latin-1"),
    "a stray byte": GOOD.encode() + b"a\tr\t\xff\n",
    "no line ends": GOOD.replace("\n", "\t").encode(),
    "carriage returns": GOOD.replace("\n", "\r").encode(),
    "CRLF": GOOD.replace("\n", "\r\n").encode(),
    "two columns": b"a\tb\n" * 30,
    "four columns": b"a\tb\tc\td\n" * 30,
    "an empty name": GOOD.encode() + b"a\t\tb\n",
    "a long line": GOOD.encode() + b"a\tr\t" + b"x" * 1_000_000 + b"\n",
    "a million columns": b"a\t" * 1_000_000,
    "an open quote": b'a,"b,c\n' + b"a,b,c\n" * 30,
    "odd quotes": b'"a""b","c\nd",e\n' * 30,
    "one fact": b"a\tr\tb\n",
    "one fact again": b"a\tr\tb\n" * 100,
    "loops": b"".join(b"a%d\tr\ta%d\n" % (i, i) for i in range(50)),
    "gzip": b"\x1f\x8b",
    "broken gzip": b"\x1f\x8b\x08\x00" + bytes(50),
    "zip": b"PK\x03\x04" + bytes(50),
    "Parquet, broken": b"PAR1" + bytes(60) + b"PAR1",
    "a JSON nest": b"[" * 100_000 + b"\n",
    "JSON objects nested": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "JSON rows": b'{"head": "a", "relation": "r", "tail": "b"}\n' * 30,
    "JSON of other types": b'{"head": [], "relation": {}, "tail": null}\n',
    "JSON NaN": b'{"head": NaN, "relation": 1, "tail": 1e999}\n',
    "JSON surrogates": b'{"head": "\\ud800", "relation": "r", "tail": "b"}\n' * 30,
    "JSON long number": b'{"head": ' + b"9" * 100_000 + b', "relation": 1, "tail": 2}\n',
    "JSON repeated keys": b'{"head": 1, "head": 2, "relation": 1, "tail": 2}\n' * 30,
    "triples": b"<http://a/x> <http://a/r> <http://a/y> .\n" * 30,
    "triples, bad": b"<http://a/x <http://a/r> <http://a/y> .\n",
    "triples, endless IRI": b"<http://a/" + b"x" * 500_000 + b"> <http://a/r> <http://a/y> .\n",
    "turtle nest": b"<http://a/x> <http://a/r> " + b"[ <http://a/r> " * 5000,
    "turtle lists": b"<http://a/x> <http://a/r> " + b"(" * 5000,
    "turtle loop of prefixes": b"@prefix a: <a:> . a:x a:y a:z .\n" * 10,
    "XML entities": b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b '
    b'"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><r>&c;</r>',
    "XML nest": b"<a>" * 20_000,
    "escape sequences": "".join(f"\x1b[31me{i}\tr\x07\t\x08e{i + 1}\n" for i in range(40)).encode(),
    "directions": "".join(f"\u202ee{i}\tr\u2066\te{i + 1}\n" for i in range(40)).encode(),
    "line separators": "".join(f"e\u2028{i}\tr\te\u2028{i + 1}\n" for i in range(40)).encode(),
    "formulas": "".join(f"$x_{i}$\t$\\frac{{\t$x_{i + 1}$\n" for i in range(40)).encode(),
    "markup": "".join(f"[red]e{i}[/]\t[/bold]\t[red]e{i + 1}[/]\n" for i in range(40)).encode(),
    "formats": "".join(f"%s{{0}}{i}\t%(x)s\t%s{{0}}{i + 1}\n" for i in range(40)).encode(),
    "code": "".join(f"`out`{i}\t`train()`\t`out`{i + 1}\n" for i in range(40)).encode(),
}
ENDINGS = (".tsv", ".csv", ".jsonl", ".parquet", ".nt", ".ttl", ".rdf", ".tsv.gz")
QUESTIONS = (".tsv", ".csv", ".jsonl", ".parquet")


def _file_case(what: str, ending: str, command: Callable[[Path], list[Any]]) -> Case:
    def prepare(place: Place) -> list[Any]:
        path = place.folder / f"file{ending}"
        path.write_bytes(CONTENTS[what])
        return command(path)

    name = command(Path("file"))[0]
    return Case(f"{name} {ending}: {what}", prepare)


def _file_cases() -> Iterator[Case]:
    for what in CONTENTS:
        for ending in ENDINGS:
            yield _file_case(what, ending, lambda path: ["import", path, "--out", "new"])
        yield _file_case(what, ".tsv", lambda path: ["audit", path])
        yield _file_case(what, ".csv", lambda path: ["audit", path])
        yield _file_case(what, ".tsv", lambda path: [*ANSWER, "--graph", path])
        for ending in QUESTIONS:
            yield _question_case(what, ending)


def _question_case(what: str, ending: str) -> Case:
    def prepare(place: Place) -> list[Any]:
        place.copy_run()
        path = place.folder / f"questions{ending}"
        path.write_bytes(CONTENTS[what])
        return ["answer", "run", "--queries", path, "--out", "answers.tsv", "--threads", "1"]

    return Case(f"answer --queries {ending}: {what}", prepare)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path.name if len(str(path)) > 100 else str(path))


def _deep(path: Path) -> None:
    path.symlink_to(path.name)


KINDS: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": _socket,
    "/dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "/dev/full": lambda path: path.symlink_to("/dev/full"),
    "a broken link": lambda path: path.symlink_to("nowhere"),
    "a link to itself": _deep,
    "a file without permissions": lambda path: path.touch(0o000),
}
TAKES_A_FILE: dict[str, Callable[[str], list[Any]]] = {
    "train": lambda name: ["train", name, "--out", "new"],
    "train --config": lambda name: ["train", "facts.tsv", "--out", "new", "--config", name],
    "train --from": lambda name: ["train", "facts.tsv", "--out", "new", "--from", name],
    "evaluate": lambda name: ["evaluate", name],
    "audit": lambda name: ["audit", name],
    "import": lambda name: ["import", name, "--out", "new"],
    "import --labels": lambda name: ["import", "facts.tsv", "--out", "new", "--labels", name],
    "answer --queries": lambda name: ["answer", "run", "--queries", name, "--out", "a.tsv"],
    "answer --graph": lambda name: [*ANSWER, "--graph", name],
    "answer --labels": lambda name: [*ANSWER, "--labels", name],
}


def _kind_cases() -> Iterator[Case]:
    for kind, make in KINDS.items():
        for command, typed in TAKES_A_FILE.items():

            def prepare(place: Place, make: Any = make, typed: Any = typed) -> list[Any]:
                place.copy_run()
                (place.folder / "facts.tsv").write_text(GOOD)
                path = place.folder / "odd.tsv"
                here = Path.cwd()
                os.chdir(place.folder)  # a socket's name is short
                try:
                    make(path)
                finally:
                    os.chdir(here)
                return typed("odd.tsv")

            yield Case(f"{command}: {kind}", prepare)


NAMES = {
    "long": "x" * 100_000,
    "a path too long": "x" * 300,
    "deep": "a/" * 2000,
    "nothing": "",
    "a space": " ",
    "a line break": "a\nb",
    "an escape": "\x1b[31mred",
    "a direction": "\u202etxt",
    "markup": "[red]x[/red]",
    "a formula": "$\\frac{x",
    "a backslash": "x\\",
    "a format": "%s%n{0}",
    "code": "`out`",
    "not UTF-8": os.fsdecode(b"caf\xe9"),
    "an option": "--head",
    "a number": "1e308",
    "quotes": "'\"'",
    "emoji": ":smile: \U0001f600",
}
TAKES_A_NAME: dict[str, Callable[[str], list[Any]]] = {
    "answer --head": lambda name: ["answer", "run", f"--head={name}", "--relation", "parent_of"],
    "answer --relation": lambda name: ["answer", "run", "--head", "f0_ann", f"--relation={name}"],
    "explain --tail": lambda name: [
        "explain", "run", "--head", "f0_ann", "--relation", "parent_of", f"--tail={name}",
    ],
    "train GRAPH": lambda name: ["train", "--out", "new", "--", name],
    "evaluate RUN": lambda name: ["evaluate", "--", name],
    "evaluate --graph": lambda name: ["evaluate", "run", f"--graph={name}"],
    "evaluate --split": lambda name: ["evaluate", "run", f"--split={name}"],
    "import --out": lambda name: ["import", "facts.tsv", f"--out={name}"],
    "import --columns": lambda name: ["import", "facts.tsv", "--out", "new", f"--columns={name}"],
    "import --delimiter": lambda name: ["import", "facts.tsv", "--out=new", f"--delimiter={name}"],
    "import --temporal": lambda name: ["import", "facts.tsv", "--out", "new", f"--temporal={name}"],
    "import --valid": lambda name: ["import", "facts.tsv", "--out", "new", f"--valid={name}"],
    "datasets get": lambda name: ["datasets", "get", "--", name],
    "train --set": lambda name: ["train", "facts.tsv", "--out", "new", f"--set={name}"],
    "train --set value": lambda name: ["train", "facts.tsv", "--out", "new", f"--set=seed={name}"],
    "train --config": lambda name: ["train", "facts.tsv", "--out", "new", f"--config={name}"],
    "settings": lambda name: ["settings", "--", name],
    "a command": lambda name: [name],
}  # fmt: skip


def _name_cases() -> Iterator[Case]:
    for what, name in NAMES.items():
        for command, typed in TAKES_A_NAME.items():

            def prepare(place: Place, name: str = name, typed: Any = typed) -> list[Any]:
                place.copy_run()
                (place.folder / "facts.tsv").write_text(GOOD)
                return typed(name)

            yield Case(f"{command} {what}", prepare)


ABSURD = (
    "backend=cuda", "backend=''", "training.learning_rate=1e308", "training.learning_rate=nan",
    "training.validation_region=0.99", "training.validation_region=0.999999",
    "model.hidden_dim=100000", "model.hidden_dim=4096", "model.num_layers=1000000000",
    "model.num_layers=64", "model.hidden_dim=true", "model.hidden_dim=16.0",
    "model.hidden_dim='16'", "model.num_heads=0", "model.num_heads=5", "model.num_value_hops=10000",
    "model.noise_scale=1e300", "model.view_size=-1", "model.dropout=1", "model.dropout=true",
    "training.batch_size=65536", "training.batch_size=10000000", "training.batch_size=0",
    "training.max_epochs=inf", "training.max_epochs=0", "training.max_minutes=1e300",
    "training.num_negatives=100000000000", "training.warmup_steps=-1", "training.patience=0",
    "training.region_size=1", "training.region_size=true", "training.gradient_clip=0",
    "training.averaging=1", "training.max_valid_facts=0", "seed=-1", "seed=1e3",
    "seed=99999999999999999999", "threads=-1", "threads=100000", "threads=true",
    "model=3", "training=[]", "model.hidden_dim.x=1", "x=1", "=1", "a", "a.b.c.d.e.f=1",
    "." * 1000 + "=1", "a." * 50_000 + "a=1", "seed=" + "[" * 20_000, "seed=" + "9" * 5000,
    "seed={a={b={c={d={e=1}}}}}", "model.hidden_dim=" + "9" * 400,
)  # fmt: skip


def _setting_cases() -> Iterator[Case]:
    for assignment in ABSURD:

        def prepare(place: Place, assignment: str = assignment) -> list[Any]:
            (place.folder / "facts.tsv").write_text(place.facts.read_text())
            return ["train", "facts.tsv", "--out", "new", "--set", assignment]

        yield Case(f"train --set {assignment[:40]}", prepare)


TIMES = ("9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "10000-01-01", "-1", "1e999",
         "nan", "2024-02-30", "2024-05", "9" * 400, "")  # fmt: skip


def _time_cases() -> Iterator[Case]:
    for time in TIMES:

        def prepare(place: Place, time: str = time) -> list[Any]:
            rows = "".join(f"e{i}\tr\te{i + 1}\t{time}\n" for i in range(40))
            (place.folder / "facts.tsv").write_text("head\trelation\ttail\twhen\n" + rows)
            return ["import", "facts.tsv", "--out", "new", "--temporal", "when"]

        yield Case(f"import --temporal {time[:30]}", prepare)


def _size_cases() -> Iterator[Case]:
    """Honest graphs of an odd size."""

    def relations(place: Place) -> list[Any]:
        rows = (f"e{i % 1000}\tr{i // 2}\te{i * 7 % 1000}\n" for i in range(200_000))
        (place.folder / "facts.tsv").write_text("".join(rows))
        return ["train", "facts.tsv", "--out", "new", "--threads", "1"]

    yield Case("train on 100,000 relations", relations)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _file_cases()
    yield from _kind_cases()
    yield from _name_cases()
    yield from _setting_cases()
    yield from _time_cases()
    yield from _size_cases()
