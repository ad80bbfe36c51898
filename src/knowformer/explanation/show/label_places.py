"""Where the names of lines go in a picture: on their line, and on no other name."""

from typing import NamedTuple

from knowformer.explanation.show.path_layout import Point

# Along a line; past the middle comes its arrow.
FRACTIONS = (0.5, 0.44, 0.56, 0.38, 0.32, 0.26)


class Box(NamedTuple):
    """A rectangle around its middle."""

    middle: Point
    width: float
    height: float

    def overlap(self, other: "Box") -> float:
        """Returns the area that two rectangles share."""
        across = (self.width + other.width) / 2 - abs(self.middle.x - other.middle.x)
        down = (self.height + other.height) / 2 - abs(self.middle.y - other.middle.y)
        return max(0.0, across) * max(0.0, down)


def place_labels(
    lines: list[list[Point]], sizes: list[tuple[float, float]], taken: list[Box]
) -> list[Point]:
    """Returns a place on each line where its name hides as little as can be.

    Args:
        lines: points along each, from where the fact starts to where it points.
        sizes: width and height of each name, in the units of the points.
        taken: what else must not be hidden.
    """
    boxes = list(taken)
    places: list[Point] = []
    for line, size in zip(lines, sizes, strict=True):
        options = [Box(line[round(f * (len(line) - 1))], *size) for f in FRACTIONS]
        # Of equals the first: nearest to the middle.
        best = min(options, key=lambda option: sum(option.overlap(box) for box in boxes))
        boxes.append(best)
        places.append(best.middle)
    return places
