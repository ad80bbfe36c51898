"""The run that cases damage, made once for all workers."""

from pathlib import Path

import pytest

from tests.hostile.template import make_template
from tests.integration.conftest import make_once


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A whole run, and the facts that it was trained on."""
    folder = make_once(
        tmp_path_factory, "hostile_template", lambda folder: make_template(folder) and None
    )
    return folder / "template", folder / "facts.tsv"
