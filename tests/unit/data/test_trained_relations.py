from pathlib import Path

import pytest

from knowformer.data.trained_relations import read_facts, read_held_out, relations_of
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


def test_facts_to_be_predicted_without_a_trained_relation_are_left_out_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "test.txt"
    path.write_text("a\tlikes\tb\nb\tlikse\tc\n", "utf-8")
    likes = Vocabulary(["likes"], kind="relation")
    assert read_held_out(path, likes) == [("a", "likes", "b")]
    assert "Left out 1 of the 2 facts" in caplog.text
    assert "'likse'. Did you mean 'likes'" in caplog.text
    caplog.clear()
    path.write_text("a\tlikes\tb\n", "utf-8")
    assert len(read_held_out(path, likes)) == 1
    assert not caplog.text
