"""Text that fits: names shortened for pictures."""

import textwrap


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
