import numpy as np
import pytest
import torch

from knowformer.calibration.calibrator import Calibrator
from knowformer.calibration.relation_choice import DEFAULTS, relation_shares
from knowformer.calibration.relation_fit import (
    DRAWS,
    fit_choice,
    fit_relation_choice,
    num_relation_questions,
    relation_candidates,
)
from tests.unit.calibration.conftest import World


def test_coefficients_are_found_again() -> None:
    random = np.random.default_rng(0)
    true = np.array([-0.5, 1.5, 0.5, 1.0, 0.0])
    columns = random.normal(size=(4000, 6, 5))
    given = random.normal(size=(4000, 6))
    chance = relation_shares(columns @ true + given, np.ones(given.shape, dtype=bool))
    chosen = np.array([random.choice(6, p=p) for p in chance])
    for fact, own in enumerate(chosen):  # the fact's own relation comes first
        columns[fact, [0, own]] = columns[fact, [own, 0]]
        given[fact, [0, own]] = given[fact, [own, 0]]
    assert fit_choice(columns, given) == pytest.approx(true, abs=0.12)


def test_without_facts_the_defaults_hold() -> None:
    assert fit_choice(np.zeros((0, 6, 5)), np.zeros((0, 6))) == pytest.approx(np.array(DEFAULTS))


def test_known_relations_of_a_pair_do_not_compete(world: World) -> None:
    valid = world.split("valid")
    facts = valid.facts[:50]
    allowed = relation_candidates(valid, facts)
    known = {tuple(fact) for fact in valid.known.tolist()}
    for (head, own, tail), row in zip(facts.tolist(), allowed, strict=True):
        for relation in range(2):
            expected = relation == own or (head, relation, tail) not in known
            assert row[relation] == expected


def test_a_fit_sees_that_the_model_tells_relations_apart(world: World) -> None:
    calibrator = Calibrator(None, "sigmoid", world.graph.relations)
    fitted = fit_relation_choice(world, calibrator, world.split("valid"), seed=0)
    assert fitted.facts == 128
    assert fitted.coefficients["tail_odds"] + fitted.coefficients["head_odds"] > 0.5
    torch.manual_seed(1)  # chance of others does not matter
    assert fit_relation_choice(world, calibrator, world.split("valid"), seed=0) == fitted
    asked = num_relation_questions(world.split("valid"))
    assert asked == 2 * (1 + DRAWS) * fitted.facts
