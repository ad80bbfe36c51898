from pathlib import Path

from knowformer import Reasoner
from knowformer.pretraining import pretrain
from tests.unit.data.test_mixture import ring

SETTINGS = {
    "model.hidden_dim": 16,
    "model.num_layers": 1,
    "training.max_epochs": 0.5,
    "training.max_valid_facts": 4,
    "threads": 1,
}


def test_a_model_for_any_graph_that_can_be_trained_further(tmp_path: Path) -> None:
    run = tmp_path / "run"
    others = [ring("c", 30)]
    pretrain([ring("a", 40), ring("b", 50)], run, validate_on=others, settings=SETTINGS)
    first = Reasoner.from_pretrained(run, graph=ring("unseen", 20), threads=1)
    assert len(first.answer(head="e0", relation="next").answers) == 10
    assert first.config.model.relation_encoder == "graph"
    more = SETTINGS | {"training.max_epochs": 1.0}
    again = pretrain([], run, settings=more, resume=True)
    assert again.dataset.name == "a + b"
