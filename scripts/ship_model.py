"""Puts the model of a pretraining into the package, without the facts that it was trained on.

    python scripts/ship_model.py runs/pretrained

The model card names the command that made the run.
"""

import shutil
import sys
from pathlib import Path

from knowformer.runs.shipped import SHIPPED_FOLDER, ship

CARD = "MODEL_CARD.md"


def main(run: Path) -> None:
    """Replaces the shipped model; its card stays."""
    card = SHIPPED_FOLDER / CARD
    text = card.read_text(encoding="utf-8") if card.exists() else ""
    shutil.rmtree(SHIPPED_FOLDER, ignore_errors=True)
    ship(run, SHIPPED_FOLDER)
    card.write_text(text, encoding="utf-8")
    size = sum(file.stat().st_size for file in SHIPPED_FOLDER.iterdir())
    sys.stdout.write(f"{SHIPPED_FOLDER}: {size:,} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
