"""Prints the tables of benchmarks/README.md from the newest result file.

python benchmarks/tables.py
"""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def number(value: float) -> str:
    """Three figures."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def speed_table(cases: list[dict[str, Any]]) -> str:
    """Queries a second on one thread, two, the reference; the first one's share of the limit."""
    found = {(c["graph"], c["width"], c["backend"], c["threads"]): c for c in cases}
    lines = [
        "| graph | width | batch | | 1 thread | 2 threads | reference | of limit |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for (graph, width, backend, threads), one in found.items():
        if (backend, threads) != ("cpu", 1):
            continue
        two, plain = found[graph, width, "cpu", 2], found[graph, width, "reference", 1]
        for kind in ("train", "evaluate"):
            speeds = [number(1e3 / case[f"{kind}_ms"]["median"]) for case in (one, two, plain)]
            share = f"{one[f'{kind}_limit_share']:.2f}"
            cells = [graph, str(width), str(one["batch_size"]), kind]
            lines.append("| " + " | ".join([*cells, *speeds, share]) + " |")
    return "\n".join(lines)


def memory_table(cases: list[dict[str, Any]]) -> str:
    """Peak memory of training."""
    lines = ["| graph | width | batch | threads | GB |", "| --- " + "| ---: " * 4 + "|"]
    for case in cases:
        if case["backend"] == "cpu":
            cells = [case["graph"], case["width"], case["batch_size"], case["threads"]]
            cells.append(f"{case['peak_memory_gb']:.2f}")
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def pieces_table(cases: list[dict[str, Any]]) -> str:
    """Milliseconds a query inside each kernel, one thread."""
    chosen = [case for case in cases if (case["backend"], case["threads"]) == ("cpu", 1)]
    names = sorted({name for c in chosen for name in c["train_pieces_ms"]} - {"rest"})
    names.append("rest")
    lines = [
        "| graph | " + " | ".join(name.replace("_", " ") for name in names) + " |",
        "| --- " + "| ---: " * len(names) + "|",
    ]
    for case in chosen:
        cells = [number(case["train_pieces_ms"].get(name, 0.0)) for name in names]
        lines.append(f"| {case['graph']}, {case['width']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Prints them."""
    newest = max(RESULTS.glob("speed_*.json"), key=lambda path: path.stem.split("_")[-1])
    record = json.loads(newest.read_text())
    print(f"From `results/{newest.name}`.\n")
    tables = (speed_table, memory_table, pieces_table)
    print("\n\n".join(table(record["cases"]) for table in tables))


if __name__ == "__main__":
    main()
