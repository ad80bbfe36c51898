import pytest

from knowformer.explanation.show.label_places import Box, place_labels
from knowformer.explanation.show.path_layout import Point, smooth

SIZE = (0.3, 0.3)


def test_boxes_overlap_by_the_area_they_share() -> None:
    box = Box(Point(0.0, 0.0), 2.0, 2.0)
    assert box.overlap(Box(Point(1.0, 1.0), 2.0, 2.0)) == pytest.approx(1.0)
    assert box.overlap(Box(Point(3.0, 0.0), 2.0, 2.0)) == 0.0


def test_a_name_alone_stands_in_the_middle_of_its_line() -> None:
    line = smooth([Point(0, 0), Point(1, 0)])
    assert place_labels([line], [SIZE], []) == [Point(0.5, 0.0)]


def test_names_of_lines_that_cross_do_not_hide_each_other() -> None:
    lines = [smooth([Point(0, 0), Point(1, 1)]), smooth([Point(0, 1), Point(1, 0)])]
    boxes = [Box(place, *SIZE) for place in place_labels(lines, [SIZE, SIZE], [])]
    assert boxes[0].overlap(boxes[1]) == 0.0
    around = Box(boxes[0].middle, 0.1, 0.1)
    (moved,) = place_labels(lines[:1], [(0.1, 0.1)], [around])
    assert Box(moved, 0.1, 0.1).overlap(around) < 0.01
