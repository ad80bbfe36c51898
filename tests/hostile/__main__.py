"""Runs the corpus in children of this process: ``python -m tests.hostile``.

What ends in a signal, hangs or takes all memory is counted too, and the installed version may be
any: ``PYTHONPATH`` decides.
"""

import argparse
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

from tests.hostile import CORPORA
from tests.hostile.case import Case, faults_of, place_in
from tests.hostile.template import make_template

LOADED = ("knowformer.pipeline", "knowformer.kernels._cpu", "knowformer.views.cpu", "rich.table",
          "matplotlib.figure", "pyarrow.parquet", "pyoxigraph", "typer")  # fmt: skip
MEMORY = 4 * 2**30
IDLE_SECONDS = 10


def run_all(cases: list[Case], root: Path, template: Path, facts: Path) -> Iterator[list[str]]:
    """Yields what is wrong with how each case went; a child that dies is replaced."""
    done = 0
    while done < len(cases):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.close(reader)
            _work(cases[done:], root, template, facts, writer)
        os.close(writer)
        with os.fdopen(reader, "rb") as reports:
            while _waits_for(reports, child):
                line = reports.readline()
                if not line:
                    break
                done += 1
                yield json.loads(line)
            else:
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        shutil.rmtree(root, ignore_errors=True)
        if done < len(cases):
            done += 1
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            yield ["hang"] if number == signal.SIGKILL else [f"signal: {number}"]


def _waits_for(reports: BinaryIO, child: int) -> bool:
    """Returns False when a child neither reports nor works: it waits for something for ever."""
    worked = -1.0
    while not select.select([reports], [], [], IDLE_SECONDS)[0]:
        fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        before, worked = worked, int(fields[11]) + int(fields[12])
        if worked - before < 2 and fields[0] != "R":  # hundredths of a second
            return False
    return True


def _work(cases: list[Case], root: Path, template: Path, facts: Path, writer: int) -> NoReturn:
    try:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for case in cases:
            with place_in(root, template, facts) as place:
                faults = faults_of(case, place)
            os.write(writer, json.dumps(faults).encode() + b"\n")
    except BaseException:  # noqa: BLE001 - of a case that cannot be prepared
        traceback.print_exc()
    finally:
        os._exit(0)  # the template is the parent's to remove


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--every", type=int, default=1, help="one case in so many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--count", action="store_true", help="only say how many cases there are")
    chosen = parser.parse_args()
    if chosen.count:
        print(json.dumps({name: len(list(cases())) for name, cases in CORPORA.items()}))  # noqa: T201
        return
    kinds: Counter[str] = Counter()
    number = bad = 0
    for module in LOADED:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as folder:
        template, facts = make_template(Path(folder))
        cases = [case for cases in CORPORA.values() for case in cases() if chosen.only in case.name]
        cases = cases[chosen.first :: chosen.every]
        found = run_all(cases, Path(folder) / "place", template, facts)
        for case, faults in zip(cases, found, strict=True):
            number += 1
            if number % 100 == 0:
                print(number, "of", len(cases), file=sys.stderr, flush=True)  # noqa: T201
            bad += bool(faults)
            kinds.update(fault.partition(":")[0] for fault in faults)
            if faults:
                print(f"{case.name}: {'; '.join(faults)}", flush=True)  # noqa: T201
    print(json.dumps({"cases": number, "bad": bad, **dict(kinds)}))  # noqa: T201
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
