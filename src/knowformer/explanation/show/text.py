"""Text that fits: names shortened for pictures, numbers aligned in columns."""

import textwrap
from math import floor, log10


def shorten(name: str, width: int, lines: int = 2) -> str:
    """Returns a name on a few short lines; what does not fit is cut in the middle."""
    readable = " ".join(name.replace("_", " ").split()) or name
    most = width * lines - 1  # a line may end early
    if len(readable) > most:
        readable = _cut_middle(readable, most)
    wrapped = textwrap.wrap(readable, width, break_on_hyphens=False) or [readable]
    return "\n".join(wrapped)


def _cut_middle(text: str, most: int) -> str:
    """Leaves out what is in the middle, at a word's end where one is near."""
    room = most - len(" … ")
    front, back = text[: room - room // 3], text[len(text) - room // 3 :]
    whole_front, whole_back = front.rpartition(" ")[0], back.partition(" ")[2]
    front = whole_front if len(whole_front) >= len(front) // 2 else front
    back = whole_back if len(whole_back) >= len(back) // 2 else back
    return f"{front.rstrip(' -,(/')} … {back.lstrip(' -,)/')}"


def same_decimals(values: list[float]) -> list[str]:
    """Returns numbers with as many decimals as the largest needs for three digits."""
    most = max(map(abs, values), default=0.0)
    decimals = 3 if most == 0 else min(9, max(0, 2 - floor(log10(most))))
    return [f"{value:.{decimals}f}" for value in values]
