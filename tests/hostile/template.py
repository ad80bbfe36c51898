"""The run that cases damage: small, calibrated, trained in a moment."""

import json
import subprocess
import sys
from pathlib import Path

SETTINGS = {
    "model.hidden_dim": 16,
    "model.num_layers": 1,
    "model.num_query_key_hops": 1,
    "model.num_value_hops": 1,
    "training.max_epochs": 1,
    "threads": 1,
}
NUM_FAMILIES = 24
TRAIN = """
import json, sys
from knowformer import train
train(sys.argv[1], sys.argv[2], settings=json.loads(sys.argv[3]))
"""


def family_lines() -> list[str]:
    lines: list[str] = []
    for number in range(NUM_FAMILIES):
        one, two, first, second = (f"f{number}_{who}" for who in ("ann", "bob", "cy", "di"))
        after = f"f{(number + 1) % NUM_FAMILIES}_cy"
        lines += [f"{one}\tmarried_to\t{two}", f"{second}\tmarried_to\t{after}"]
        lines += [
            f"{parent}\tparent_of\t{child}" for parent in (one, two) for child in (first, second)
        ]
        lines += [f"{first}\tsibling_of\t{second}", f"{second}\tsibling_of\t{first}"]
    return lines


def make_template(folder: Path) -> tuple[Path, Path]:
    """Trains in a process of its own, so that children of this one start without threads."""
    facts = folder / "facts.tsv"
    facts.write_text("".join(f"{line}\n" for line in family_lines()), "utf-8")
    run = folder / "template"
    command = [sys.executable, "-c", TRAIN, str(facts), str(run), json.dumps(SETTINGS)]
    subprocess.run(command, check=True)
    return run, facts
