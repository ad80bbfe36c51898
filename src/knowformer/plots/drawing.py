"""Drawing with names in it: they are text, never formulas, however they are written."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager

from knowformer.errors import printable

LONGEST = 80  # characters of a title


@contextmanager
def drawing() -> Generator[None]:
    """Draws names as text, never as formulas, and the same picture as the same bytes."""
    from matplotlib import rc_context

    with (
        rc_context({"text.parse_math": False, "svg.hashsalt": "knowformer"}),
        warnings.catch_warnings(),
    ):
        # A letter that the font lacks is drawn as a box: not the reader's concern.
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def title_of(text: str) -> str:
    """Returns text that can stand above a picture: one line, not too long."""
    text = printable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
