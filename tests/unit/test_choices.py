from typing import get_args

from knowformer.choices import PresetName, SplitName, TrackerName
from knowformer.data.dataset import SPLIT_NAMES
from knowformer.model.config import PRESETS
from knowformer.tracking import TRACKERS
from knowformer.training.settings_file import TRAINING_PRESETS


def test_every_choice_has_something_behind_it() -> None:
    assert set(get_args(PresetName)) == PRESETS.keys() == TRAINING_PRESETS.keys()
    assert get_args(SplitName) == SPLIT_NAMES
    assert set(TrackerName) == TRACKERS.keys()
