from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowformer.explanation.explanation import EvidencePath, Loss, Step
from knowformer.explanation.show.path_layout import lay_out, shorten, smooth

NO_LOSS = Loss(score=0.0, log_odds=0.0, probability=0.0, rank=0.0)


def path(*names: str, weight: float = 1.0, relation: str = "r") -> EvidencePath:
    steps = [
        Step(start=one, relation=relation, end=other, backwards=False)
        for one, other in pairwise(names)
    ]
    return EvidencePath(steps=steps, weight=weight, loss=NO_LOSS)


def test_the_head_stands_left_the_answer_right_the_rest_between() -> None:
    layout = lay_out([path("h", "a", "b", "t"), path("h", "b", "t"), path("h", "t")], "h", "t")
    columns = {name: point.x for name, point in layout.entities.items()}
    assert columns == {"h": 0, "a": 1, "b": 2, "t": 3}
    assert layout.num_columns == 4


def test_a_fact_of_several_paths_is_one_line_with_the_sum_of_their_weights() -> None:
    layout = lay_out([path("h", "a", "t", weight=2.0), path("h", "a", "b", "t")], "h", "t")
    weights = {(fact.points[0].x, fact.points[-1].x): fact.weight for fact in layout.facts}
    assert len(layout.facts) == 4
    assert weights[0, 1] == 3.0


def test_facts_that_link_the_same_entities_are_bent_apart() -> None:
    layout = lay_out([path("h", "t"), path("h", "t", relation="s")], "h", "t")
    one, other = (smooth(fact.points) for fact in layout.facts)
    assert one[len(one) // 2].y != other[len(other) // 2].y


NAMES = "abcdef"


@given(st.lists(st.permutations(NAMES).map(lambda names: names[:3]), min_size=1, max_size=5))
def test_no_two_things_share_a_place(middles: list[list[str]]) -> None:
    paths = [path("h", *middle[: 1 + number % 3], "t") for number, middle in enumerate(middles)]
    layout = lay_out(paths, "h", "t")
    places = list(layout.entities.values())
    assert len(set(places)) == len(places)
    assert layout.entities["h"].x == 0
    assert all(
        0 < layout.entities[n].x < layout.num_columns - 1 for n in layout.entities if n in NAMES
    )
    for fact in layout.facts:
        passed = [point for point in fact.points[1:-1] if point.x == int(point.x)]
        assert not set(passed) & set(places)


def test_without_paths_head_and_answer_stand_alone() -> None:
    layout = lay_out([], "h", "t")
    assert set(layout.entities) == {"h", "t"}
    assert layout.facts == []


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("isa", "isa"),
        ("interacts_with", "interacts with"),
        ("body_part_organ_or_component", "body part organ\nor component"),
        ("neuroreactive_substance_or_biogenic_amine", "neuroreactive …\namine"),
        ("release date s - film release region", "release date s …\nregion"),
        ("x" * 60, "x" * 16 + "\nxxx … xxxxxxxxx"),
    ],
)
def test_long_names_are_shortened_readably(name: str, shown: str) -> None:
    assert shorten(name, 16) == shown


@given(st.text(max_size=80), st.integers(4, 30), st.integers(1, 3))
def test_shortened_names_fit(name: str, width: int, lines: int) -> None:
    assert all(len(line) <= max(width, 1) for line in shorten(name, width, lines).split("\n")) or (
        not name.strip()
    )
