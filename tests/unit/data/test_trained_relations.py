from pathlib import Path

import pytest

from knowformer.data.trained_relations import read_facts, relations_of
from knowformer.errors import DataError
from knowformer.graph.vocabulary import Vocabulary


def test_facts_keep_to_the_relations_of_training(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tlikes\tb\nb\tlikse\tc\n", "utf-8")
    given = [("a", "likes", "b"), ("b", "likse", "c")]
    assert read_facts(path, relations_of(path, given, None)) == given
    likes = Vocabulary(["likes"], kind="relation")
    with pytest.raises(DataError, match=r"'likse' in triple 2 of .*Did you mean 'likes'"):
        read_facts(path, likes)
    with pytest.raises(DataError, match="'likse' in triple 2"):
        relations_of(path, given, likes)
