from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from knowformer.explanation.explanation import EvidencePath, ScoreDrop, Step
from knowformer.explanation.show.path_layout import lay_out, smooth

NO_DROP = ScoreDrop(
    score=0.0, log_odds=0.0, truth_log_odds=0.0, probability=0.0, rank=0.0, rank_among_all=0.0
)


def path(*names: str, weight: float = 1.0, relation: str = "r") -> EvidencePath:
    steps = [
        Step(start=one, relation=relation, end=other, backwards=False)
        for one, other in pairwise(names)
    ]
    return EvidencePath(steps=steps, weight=weight, loss=NO_DROP)


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
