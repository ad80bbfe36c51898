from pathlib import Path

import pytest

from knowformer.data.labels import Labels, read_label_file
from knowformer.errors import DataError, VocabularyError
from knowformer.graph.vocabulary import Vocabulary

ENTITIES = Vocabulary(["Q1", "Q2", "Q3", "Paris"], kind="entity")
LABELS = Labels({"Q1": "Paris", "Q2": "Berlin", "Q3": "Berlin", "Q9": "Rome"}, {"P1": "in"})


def test_an_id_wins_over_a_readable_name():
    assert LABELS.find_entity("Paris", ENTITIES) == 3
    assert LABELS.find_entity("Q1", ENTITIES) == 0


def test_a_readable_name_of_one_entity_is_found_and_of_several_refused():
    more = LABELS.updated(Labels({"Q3": "Bonn"}))
    assert more.find_entity("Berlin", ENTITIES) == 1
    assert LABELS.find_relation("in", Vocabulary(["P1"], kind="relation")) == 0
    with pytest.raises(VocabularyError, match="stands for 2: 'Q2', 'Q3'"):
        LABELS.find_entity("Berlin", ENTITIES)


def test_unknown_names_get_near_readable_ones_but_not_those_of_other_graphs():
    with pytest.raises(VocabularyError, match=r"got 'Berlinn'\. Did you mean 'Berlin'\?"):
        LABELS.find_entity("Berlinn", ENTITIES)
    with pytest.raises(VocabularyError, match="got 'Rome'"):
        LABELS.find_entity("Rome", ENTITIES)
    assert LABELS.has_entity("Berlin", ENTITIES)
    assert not LABELS.has_entity("Lyon", ENTITIES)
    assert not LABELS.has_relation("on", Vocabulary(["P1"], kind="relation"))


def test_the_name_before_brackets_will_do_where_it_stands_for_one():
    cities = Labels({"Q1": "Rome (film) (Q1)", "Q2": "Paris (Texas)", "Q3": "Paris (France)"})
    entities = Vocabulary(["Q1", "Q2", "Q3"], kind="entity")
    assert cities.find_entity("Rome (film)", entities) == 0
    assert cities.find_entity("Paris (France)", entities) == 2
    assert cities.has_entity("Rome (film)", entities)
    with pytest.raises(VocabularyError, match="stands for 2: 'Q2', 'Q3'"):
        cities.find_entity("Paris", entities)
    with pytest.raises(VocabularyError, match=r"Did you mean 'Rome \(film\)'\?"):
        cities.find_entity("Romme (film)", entities)
    exact = Labels({"Q1": "Rome", "Q2": "Rome (Texas)"})
    assert exact.find_entity("Rome", entities) == 0


def test_a_label_file_is_read_with_its_faults_named(tmp_path: Path):
    path = tmp_path / "labels.tsv"
    path.write_text("Q1\tParis, France\nP1\tlies in\n", "utf-8")
    labels = read_label_file(path)
    assert (labels.entity("Q1"), labels.relation("P1")) == ("Paris, France", "lies in")
    path.write_text("Q1 Paris\n", "utf-8")
    with pytest.raises(DataError, match=r"labels\.tsv:1"):
        read_label_file(path)
