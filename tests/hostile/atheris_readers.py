"""Longer fuzzing, by hand, guided by coverage: needs atheris, which the package does not.

    pip install atheris
    python -m tests.hostile.atheris_readers -max_total_time=600
    python -m tests.hostile.atheris_readers --only "run " --corpus found -max_total_time=600

``--only``, once or more, keeps targets whose name holds a text; ``--corpus`` is a folder for the
inputs that reached new code; the rest is libFuzzer's. The first byte of an input chooses among the
targets, the others are the file.
"""

import argparse
import random
import sys
import tempfile
from functools import partial
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["knowformer.data", "knowformer.runs", "knowformer.storage", "knowformer.answering",
             "knowformer.graph", "knowformer.training", "knowformer.calibration"]
):  # fmt: skip
    from tests.hostile.readers import READER_TARGETS, feed, good_inputs, run_targets

from tests.hostile.inputs import CONTENTS
from tests.hostile.seeds import mutated
from tests.hostile.template import make_template

LONGEST = 16_384


def seeds_of(names: list[str], good: dict[str, list[bytes]]) -> list[bytes]:
    """Returns what fuzzing starts from: good files, and the odd ones of the corpus."""
    odd = [content for content in CONTENTS.values() if len(content) < LONGEST]
    return [
        bytes([number]) + content
        for number, name in enumerate(names)
        for content in (good[name] if name.startswith("run ") else good[name] + odd)
    ]


def change(seeds: list[bytes], data: bytes, max_size: int, seed: int) -> bytes:
    """Changes an input by libFuzzer's means, or by ones that know the formats.

    libFuzzer drops seeds that reach no further code, such as a second good file of one run; so
    some changes start from a seed.
    """
    draw = random.Random(seed)
    way = draw.randrange(3)
    if way == 0:
        data = draw.choice(seeds)
    elif way == 1 or len(data) < 2:
        return atheris.Mutate(data, max_size)
    return (data[:1] + mutated(data[1:], seed))[:max_size]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="targets whose name holds this")
    parser.add_argument("--corpus", type=Path, help="keeps inputs that reached new code")
    chosen, others = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        template, _ = make_template(folder)
        targets = {**READER_TARGETS, **run_targets(template)}
        names = [name for name in targets if any(text in name for text in chosen.only or [""])]
        seeds = seeds_of(names, good_inputs(template))
        (folder / "seeds").mkdir()
        for number, content in enumerate(seeds):
            (folder / "seeds" / str(number)).write_bytes(content)
        work = folder / "work"
        work.mkdir()

        def one_input(data: bytes) -> None:
            if data:
                feed(targets[names[data[0] % len(names)]], work, data[1:])

        corpus: list[str] = []
        if chosen.corpus is not None:
            chosen.corpus.mkdir(parents=True, exist_ok=True)
            corpus.append(str(chosen.corpus))
        limit = f"-max_len={2 * max(map(len, seeds))}"
        arguments = [sys.argv[0], limit, *others, *corpus, str(folder / "seeds")]
        atheris.Setup(arguments, one_input, custom_mutator=partial(change, seeds))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
