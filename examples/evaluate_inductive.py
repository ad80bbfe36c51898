"""Train on one graph, evaluate on another with the same relations and other entities."""

import random
import tempfile
from pathlib import Path

from knowformer import ModelConfig, RunConfig, TrainingConfig, train


def families(prefix: str, count: int) -> list[str]:
    """Returns TSV lines: each family has a parent, two children and three grandchildren."""
    lines: list[str] = []
    for number in range(count):
        ann, bob, cas, dan, eve, fay = (f"{prefix}{number}_{letter}" for letter in "abcdef")
        for parent, child in ((ann, bob), (ann, cas), (bob, dan), (bob, eve), (cas, fay)):
            lines.append(f"{parent}\tparent_of\t{child}")
        lines += [f"{ann}\tgrandparent_of\t{child}" for child in (dan, eve, fay)]
    return lines


def write_splits(folder: Path, lines: list[str]) -> None:
    """Writes a tenth each to valid.txt and test.txt, the rest to train.txt."""
    random.Random(0).shuffle(lines)
    folder.mkdir()
    tenth = len(lines) // 10
    parts = {"valid": lines[:tenth], "test": lines[tenth : 2 * tenth], "train": lines[2 * tenth :]}
    for name, part in parts.items():
        (folder / f"{name}.txt").write_text("\n".join(part))


with tempfile.TemporaryDirectory() as temporary:
    write_splits(Path(temporary, "kin"), families("seen", 30))
    write_splits(Path(temporary, "kin_ind"), families("unseen", 12))
    model = ModelConfig(hidden_dim=16, num_layers=2)
    config = RunConfig(model=model, training=TrainingConfig(max_epochs=5), threads=1)
    report = train(Path(temporary, "kin"), f"{temporary}/run", config=config).evaluate("test")
    print(f"{report.protocol.setting}: MRR {report.mrr:.3f} over {report.protocol.num_facts} facts")
