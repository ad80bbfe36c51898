import numpy as np
import pytest
import torch

from knowformer.calibration.calibrator import Calibrator
from knowformer.calibration.relation_evidence import gather_evidence, num_queries, on_graph
from knowformer.graph.roles import roles_of
from tests.unit.calibration.conftest import World


def test_evidence_is_that_of_both_directions_and_of_both_kinds(world: World) -> None:
    calibrator = Calibrator(None, "sigmoid", world.graph.relations)
    roles = roles_of(world.graph.adjacency)
    pairs, relations = torch.tensor([[3, 5], [3, 7]]), torch.tensor([[0, 1], [1, 0]])
    steps: list[tuple[int, int]] = []
    found = gather_evidence(
        on_graph(world, world.graph),
        calibrator,
        roles,
        pairs,
        relations,
        progress=lambda *step: steps.append(step),
    )
    assert steps[-1] == (6, 6)  # two relations of one head and of two tails
    assert num_queries(pairs, 2) == 6
    assert found.columns.shape == (2, 2, 5)
    score = world.table[1, 3, 7].double().numpy()
    assert found.probabilities[1, 0] == pytest.approx(1 / (1 + np.exp(-score)), rel=1e-6)
    prior, of_head, of_tail, by_tail, by_head = found.columns[1, 0]
    assert by_tail == pytest.approx(by_head)  # this world's inverse says the same
    assert prior == roles.log_prior[1]
    assert of_head == roles.log_share(3)[1]
    assert of_tail == roles.log_share(7, backwards=True)[1]


def test_batches_do_not_matter(world: World) -> None:
    calibrator = Calibrator(None, "sigmoid", world.graph.relations)
    pairs, relations = torch.tensor([[1, 2], [3, 4], [5, 4]]), torch.tensor([[0, 1]] * 3)
    asked = (on_graph(world, world.graph), calibrator, roles_of(world.graph.adjacency))
    whole = gather_evidence(*asked, pairs, relations)
    parts = gather_evidence(*asked, pairs, relations, batch_size=2)
    assert np.array_equal(whole.columns, parts.columns)
