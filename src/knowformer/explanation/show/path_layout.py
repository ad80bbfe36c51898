"""Layout of paths in a picture: the head on the left, the answer on the right.

An entity is in the column of the longest path that leads to it. A fact that skips columns takes a
place in each of them, so that no line runs through an entity. Places in a column are ordered by the
mean of their neighbours' heights, which leaves few crossings.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from knowformer.explanation.explanation import EvidencePath, Step

ROUNDS = 8  # of ordering; small pictures are stable after three
BULGE = 0.3  # rows between two facts that link the same entities


class Point(NamedTuple):
    """Columns from the left, rows from the middle."""

    x: float
    y: float


class _Line(NamedTuple):
    """A fact as it is walked; a line of the picture."""

    start: str
    relation: str
    end: str
    backwards: bool


@dataclass(frozen=True)
class PlacedFact:
    """A line through points, in the direction of the walk."""

    relation: str
    backwards: bool
    weight: float  # of all paths that take it
    points: list[Point]


@dataclass(frozen=True)
class PathLayout:
    """Entities and facts with their places."""

    entities: dict[str, Point]
    facts: list[PlacedFact]
    num_columns: int
    num_rows: int


_Place = str | tuple[_Line, int]  # an entity, or a line that passes a column


def lay_out(paths: list[EvidencePath], head: str, answer: str) -> PathLayout:
    """Returns places for the paths from head to answer."""
    column = _columns(paths, head, answer)
    weights: defaultdict[_Line, float] = defaultdict(float)
    for path in paths:
        for step in path.steps:
            weights[_line(step)] += path.weight
    routes = {line: _route(line, column) for line in weights}
    column_of: dict[_Place, int] = {}
    for line, route in routes.items():
        first, last = column[line.start], column[line.end]
        direction = 1 if last >= first else -1
        for number, place in enumerate(route):
            column_of[place] = min(max(first + direction * number, 0), column[answer])
        column_of[line.end] = last
    column_of |= {head: 0, answer: column[answer]}
    height = _heights(column_of, list(routes.values()))
    facts = [
        PlacedFact(line.relation, line.backwards, weights[line], points)
        for line, points in _bend_apart(routes, column_of, height).items()
    ]
    entities = {
        place: Point(column_of[place], height[place])
        for place in column_of
        if isinstance(place, str)
    }
    rows = 1 + round(2 * max(abs(y) for y in height.values()))
    return PathLayout(entities, facts, column[answer] + 1, rows)


def smooth(points: list[Point], steps: int = 24) -> list[Point]:
    """Returns a curve through the points that runs level at each, so that lines stay apart."""
    curve = [points[0]]
    for one, other in pairwise(points):
        for step in range(1, steps + 1):
            along = step / steps
            eased = along * along * (3 - 2 * along)
            curve.append(
                Point(one.x + (other.x - one.x) * along, one.y + (other.y - one.y) * eased)
            )
    return curve


def _line(step: Step) -> _Line:
    return _Line(step.start, step.relation, step.end, step.backwards)


def _columns(paths: list[EvidencePath], head: str, answer: str) -> dict[str, int]:
    column = {head: 0}
    for path in paths:
        for number, step in enumerate(path.steps, start=1):
            column[step.end] = max(number, column.get(step.end, 0))
    last = max((c for name, c in column.items() if name not in {head, answer}), default=0)
    # No other entity shares a column with the head or the answer.
    return column | {head: 0, answer: last + 1}


def _route(line: _Line, column: dict[str, int]) -> list[_Place]:
    first, last = column[line.start], column[line.end]
    between = range(min(first, last) + 1, max(first, last))
    passed: list[_Place] = [(line, at) for at in (between if last > first else reversed(between))]
    return [line.start, *passed, line.end]


def _heights(column_of: dict[_Place, int], routes: list[list[_Place]]) -> dict[_Place, float]:
    """Orders each column by its neighbours' mean height, then spaces it evenly."""
    neighbours: defaultdict[_Place, list[_Place]] = defaultdict(list)
    for route in routes:
        for one, other in pairwise(route):
            neighbours[one].append(other)
            neighbours[other].append(one)
    columns: defaultdict[int, list[_Place]] = defaultdict(list)
    for place, number in column_of.items():
        columns[number].append(place)
    height: dict[_Place, float] = {}
    for places in columns.values():
        height |= _even(places)
    for number in range(ROUNDS):
        order = sorted(columns, reverse=bool(number % 2))
        for at in order:
            columns[at].sort(key=lambda place: _mean([height[n] for n in neighbours[place]]))
            height |= _even(columns[at])
    return height


def _even(places: list[_Place]) -> dict[_Place, float]:
    return {place: number - (len(places) - 1) / 2 for number, place in enumerate(places)}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _bend_apart(
    routes: dict[_Line, list[_Place]], column_of: dict[_Place, int], height: dict[_Place, float]
) -> dict[_Line, list[Point]]:
    """Turns routes into points; facts that link the same entities directly are bent apart."""
    siblings: defaultdict[frozenset[str], list[_Line]] = defaultdict(list)
    for line, route in routes.items():
        if len(route) == 2:
            siblings[frozenset([line.start, line.end])].append(line)
    points: dict[_Line, list[Point]] = {}
    for line, route in routes.items():
        at = [Point(column_of[place], height[place]) for place in route]
        group = siblings[frozenset([line.start, line.end])] if len(route) == 2 else [line]
        if len(group) > 1 or at[0].x == at[-1].x:
            bend = BULGE * (group.index(line) - (len(group) - 1) / 2) if line in group else 0.0
            sideways = 0.45 if at[0].x == at[-1].x else 0.0
            middle = Point((at[0].x + at[1].x) / 2 + sideways, (at[0].y + at[1].y) / 2 + bend)
            at = [at[0], middle, at[1]]
        points[line] = at
    return points
