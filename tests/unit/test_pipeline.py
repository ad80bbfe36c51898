from pathlib import Path

import torch
from torch import Tensor

from knowformer.data.dataset import Dataset
from knowformer.model.knowformer import KnowFormer
from knowformer.pipeline import train
from knowformer.storage.tensor_files import read_tensors
from knowformer.training.config import RunConfig, parse_config
from knowformer.training.events import Event, read_events


def tiny_config() -> RunConfig:
    model = {"hidden_dim": 16, "num_heads": 2, "num_layers": 1, "num_value_hops": 2}
    training = {"max_epochs": 3, "batch_size": 16}
    return parse_config({"model": model, "training": training, "threads": 1}, where="a test")


def test_every_validation_hands_out_the_weights_it_measured(ring: Dataset, tmp_path: Path) -> None:
    weights: dict[int, dict[str, Tensor]] = {}

    def keep(model: KnowFormer, event: Event) -> None:
        weights[event["step"]] = {key: value.clone() for key, value in model.state_dict().items()}

    reasoner = train(ring, tmp_path, config=tiny_config(), on_validation=keep, calibrate=False)
    validated = [e for e in read_events(tmp_path / "events.jsonl") if e["kind"] == "validation"]
    assert [event["step"] for event in validated] == list(weights)
    assert len(weights) == 3
    best = [event["step"] for event in validated if event["best"]][-1]
    stored, _ = read_tensors(tmp_path / "model.safetensors")
    for name, value in reasoner.model.state_dict().items():
        assert torch.equal(value, stored[name])
        assert torch.equal(value, weights[best][name])
    assert not (tmp_path / "calibration.json").exists()
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]  # keeping is up to the caller
