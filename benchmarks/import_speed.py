"""Rows a second of ``knowformer import``, by format: a million facts, seeded.

    python benchmarks/import_speed.py           # a million rows, some minutes
    python benchmarks/import_speed.py 100000    # fewer

Times are of the processor, on one core, so that other work on the machine matters little; each is
the median of five, the whole import of three. Writes results/import_<hardware>_<date>.json, with
the package's own reader of triples (``read_triples``) beside it; the last line printed is JSON.
"""

import gzip
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from knowformer.importing import import_files
from knowformer.importing.importing import ImportOptions, Reading
from knowformer.storage.atomic_files import write_text
from knowformer.storage.triples_io import read_triples
from knowformer.system.environment import describe_environment

HERE = Path(__file__).parent
NUM_ENTITIES, NUM_RELATIONS = 200_000, 50


def write_files(folder: Path, number: int) -> list[Path]:
    """Writes the same facts in every format; few entities occur often, as in real graphs."""
    import pyarrow
    import pyarrow.parquet

    draw = np.random.default_rng(0)
    ids = [(draw.pareto(0.7, number) * 50).astype(np.int64) % NUM_ENTITIES for _ in range(2)]
    relations = draw.integers(NUM_RELATIONS, size=number).tolist()
    rows = [
        (f"entity_{h}", f"relation_{r}", f"entity_{t}")
        for h, r, t in zip(ids[0].tolist(), relations, ids[1].tolist(), strict=True)
    ]
    tsv = "".join("\t".join(row) + "\n" for row in rows)
    (folder / "facts.tsv").write_text(tsv)
    (folder / "facts.tsv.gz").write_bytes(gzip.compress(tsv.encode(), 6))
    (folder / "facts.csv").write_text("head,relation,tail\n" + tsv.replace("\t", ","))
    columns = dict(zip(("head", "relation", "tail"), zip(*rows, strict=True), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "facts.parquet")
    base = "http://example.org/"
    (folder / "facts.nt").write_text(
        "".join(f"<{base}{h}> <{base}{r}> <{base}{t}> .\n" for h, r, t in rows)
    )
    return [folder / f"facts.{end}" for end in ("tsv", "tsv.gz", "csv", "parquet", "nt")]


def seconds(work: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Returns the processor's time for a piece of work, and that of the clock."""
    processor, clock = [], []
    for _ in range(repeats):
        before = time.process_time(), time.perf_counter()
        work()
        processor.append(time.process_time() - before[0])
        clock.append(time.perf_counter() - before[1])
    return {
        "processor_seconds": statistics.median(processor),
        "clock_seconds": statistics.median(clock),
        "repeats": repeats,
    }


def main() -> None:
    """Measures, prints and stores."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    cases: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in write_files(folder, number):
            read = seconds(lambda path=path: Reading(ImportOptions(), [path], None).read(), 5)
            cases.append({"what": f"read {path.name}"} | read)
        cases.append(
            {"what": "read_triples, for comparison"}
            | seconds(lambda: read_triples(folder / "facts.tsv"), 5)
        )

        def whole() -> None:
            import_files([folder / "facts.tsv"], folder / "out", force=True)

        cases.append({"what": "import facts.tsv: read, split, audit, write"} | seconds(whole, 3))
    for case in cases:
        case["rows_per_second"] = round(number / case["processor_seconds"])
        print(
            f"{case['what']:45} {case['processor_seconds']:6.2f} s {case['rows_per_second']:>9,}/s"
        )
    environment = describe_environment()
    hardware = re.sub(r"\W+", "-", environment["hardware"]["processor"].lower()).strip("-")
    result = {
        "command": ["python", *sys.argv],
        "rows": number,
        "environment": environment,
        "cases": cases,
    }
    today = datetime.now(UTC).date()
    if number >= 1_000_000:
        target = HERE / "results" / f"import_{hardware}_{today}.json"
        write_text(target, json.dumps(result, indent=2) + "\n")
    print(json.dumps({case["what"]: case["rows_per_second"] for case in cases}))


if __name__ == "__main__":
    main()
