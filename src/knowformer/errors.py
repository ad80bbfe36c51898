"""Everything knowformer raises on purpose.

    KnowformerError                     exit code 1: our fault
    |-- NonFiniteLossError              a training step gave NaN or infinity
    |-- ProcessLostError                one of several processes that train together is gone
    `-- UserError                       exit code 2: the input is at fault
        |-- DataError                   a graph file or data set is not as expected
        |   `-- DownloadError           a catalogue file could not be fetched or verified
        |-- VocabularyError             a name that the graph or the model does not know
        |-- ConfigError                 a setting that does not exist or cannot work
        |-- MissingPackageError         an optional package that is not installed
        |-- BackendUnavailableError     a kernel backend that cannot run here
        |-- BundleError                 a run folder or a store that is missing, broken or in use
        |-- ConflictError               a change that what happened before does not allow
        `-- StorageError                a file could not be written

A message is one sentence, or two: what was expected, what was found, where, and what to do.
What to do is said in Python's words, with parameters and calls in backticks, such as `resume=True`;
the command line says it as flags and commands (``interfaces/hints.py``).
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec

LONGEST = 2000  # characters of a message: names and paths may have any number
_BEGINNING, _END = 1200, 600
# What moves a cursor, rings, hides or turns text round, and what no encoding has.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Returns text in one line, with backslash escapes for characters that are none to see."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(text: str) -> str:
    """Returns text that a person can read, without its middle if it is very long."""
    return text if len(text) <= LONGEST else f"{text[:_BEGINNING]} ... {text[-_END:]}"


class KnowformerError(Exception):
    """Base of all errors raised on purpose; whatever a message quotes, it is one short line."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(printable(message)))


class NonFiniteLossError(KnowformerError):
    """A training step's loss or gradient was NaN or infinite; the weights were left untouched."""

    def __init__(
        self, *, step: int, loss: float, batch: str, gradient_norm: float | None = None
    ) -> None:
        found = f"a finite loss, got {loss}"
        if gradient_norm is not None:
            found = f"a finite gradient, got one of norm {gradient_norm} for a loss of {loss}"
        super().__init__(
            f"Expected {found} at step {step} on {batch}; the weights before this step are kept. "
            "A smaller training.learning_rate or a smaller "
            "training.gradient_clip usually helps."
        )


class ProcessLostError(KnowformerError):
    """One of several processes that train together has ended without a word."""

    def __init__(self, *, number: int, size: int, who: str) -> None:
        named = f"rank {number}" + (f" ({who})" if who else "")
        super().__init__(
            f"Expected {size} processes to the end of training, but {named} is gone. The run is "
            "kept up to its last checkpoint; go on with `resume=True`, on any number of processes."
        )


class UserError(KnowformerError):
    """The input is at fault, and the message says how to mend it."""

    exit_code = 2


class DataError(UserError):
    """A graph file or a data set is not as expected."""


class DownloadError(DataError):
    """A catalogue file could not be fetched, or is not the file it should be."""


class VocabularyError(UserError, LookupError):
    """A name that the graph or the model does not know."""


class ConfigError(UserError, ValueError):
    """A setting that does not exist or cannot work."""


class MissingPackageError(UserError):
    """An optional package that is not installed."""

    def __init__(self, package: str, extra: str | None, purpose: str) -> None:
        wanted = f"'knowformer[{extra}]'" if extra else package
        super().__init__(
            f"Expected the package {package} to {purpose}, found none. Install it with "
            f"pip install {wanted}."
        )


class BackendUnavailableError(UserError):
    """A kernel backend that cannot run here."""


class BundleError(UserError):
    """A run folder, or a store of live facts, that is missing, broken or already in use."""


class ConflictError(UserError):
    """A change that what happened before does not allow."""


class StorageError(UserError):
    """A file could not be written."""


def require_package(package: str, *, extra: str | None, purpose: str) -> None:
    """Looks whether an optional package is installed, before it is imported.

    Raises:
        MissingPackageError: it is not; the message says what it is for and how to install it.
    """
    if find_spec(package) is None:
        raise MissingPackageError(package, extra, purpose)


def suggest(name: str, known: Iterable[str], *, limit: int = 3) -> str:
    """Returns ' Did you mean ...?' with the nearest known spellings, or an empty string."""
    candidates = list(known)
    folded = {candidate.casefold(): candidate for candidate in candidates}
    near = [folded[name.casefold()]] if name.casefold() in folded else []
    if not near:
        # Comparing is quadratic in length: names of a very different length cannot be near anyway.
        plausible = [c for c in folded if abs(len(c) - len(name)) <= max(3, len(name) // 3)]
        near = [folded[c] for c in get_close_matches(name.casefold(), plausible, limit, 0.6)]
    if not near:
        near = [c for f, c in folded.items() if len(name) > 2 and name.casefold() in f][:limit]
    return f" Did you mean {', '.join(map(repr, near))}?" if near else ""
