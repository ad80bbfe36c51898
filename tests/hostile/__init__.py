"""A corpus of hostile and odd input, as tables: every case ends in a result or in a sentence.

``test_corpus.py`` runs it within the tests' process; ``python -m tests.hostile`` runs it in
children, of which a case may be the end.
"""

from collections.abc import Callable, Iterator

from tests.hostile import inputs, mapped_folders, run_folders
from tests.hostile.case import Case

CORPORA: dict[str, Callable[[], Iterator[Case]]] = {
    "run folders": run_folders.cases,
    "mapped folders": mapped_folders.cases,
    "inputs": inputs.cases,
}
