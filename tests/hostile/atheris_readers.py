"""Longer fuzzing, by hand, guided by coverage: needs atheris.

    pip install atheris
    python -m tests.hostile.atheris_readers -max_total_time=600

The first byte of an input chooses the reader or the file of a run folder, the rest is the file.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["knowformer.data", "knowformer.runs", "knowformer.storage",
                                         "knowformer.answering.query_files"]):  # fmt: skip
    from tests.hostile.readers import READER_TARGETS, feed, run_targets

from tests.hostile.inputs import CONTENTS
from tests.hostile.template import make_template


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        template, _ = make_template(folder)
        targets = {**READER_TARGETS, **run_targets(template)}
        names = list(targets)
        (folder / "work").mkdir()
        seeds = folder / "seeds"
        seeds.mkdir()
        for number, name in enumerate(names):
            good = [(template / name.removeprefix("run ")).read_bytes()] if "run " in name else []
            for at, content in enumerate(good or list(CONTENTS.values())):
                if len(content) < 4096:
                    (seeds / f"{number}-{at}").write_bytes(bytes([number]) + content)

        def one_input(data: bytes) -> None:
            if data:
                feed(targets[names[data[0] % len(names)]], folder / "work", data[1:])

        atheris.Setup([*sys.argv, str(seeds)], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
