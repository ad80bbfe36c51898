import pytest
from pydantic import ValidationError

from knowformer.training.config import LossName, TrainingConfig


@pytest.mark.parametrize(("loss", "link"), [("cross_entropy", "softmax"), ("binary", "sigmoid")])
def test_the_loss_decides_the_link_function(loss: LossName, link: str) -> None:
    assert TrainingConfig(loss=loss).link == link


def test_zero_turns_partitions_off() -> None:
    assert TrainingConfig(region_size=0) == TrainingConfig(region_size=None)


def test_at_most_one_holdout() -> None:
    with pytest.raises(ValidationError, match="exclude each other"):
        TrainingConfig(validation_region=0.1, validation_relations=0.1)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        TrainingConfig.model_validate({"regions": 4})
