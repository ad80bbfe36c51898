"""Answers of a real, small model: alone or in batches, in any order, with and without noise."""

import dataclasses
from pathlib import Path

import pytest

import knowformer
from knowformer import ModelConfig, Reasoner, RunConfig, TrainingConfig, train
from knowformer.answering.ranking import Options
from knowformer.calibration import relation_evidence
from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError, DataError, VocabularyError

SMALL = ModelConfig(hidden_dim=16, num_heads=4, num_layers=1, num_value_hops=2)
CONFIG = RunConfig(model=SMALL, training=TrainingConfig(max_epochs=1), threads=1)
RELATIONS = ("embassy", "treaties", "timesinceally", "ngoorgs3", "exports3", "independence")


@pytest.fixture(scope="module")
def nations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some relations of nations: enough to be calibrated in moments."""
    folder = tmp_path_factory.mktemp("few") / "nations"
    folder.mkdir()
    embedded = Path(knowformer.__file__).parent / "data" / "embedded" / "nations"
    for part in ("train.txt", "valid.txt", "test.txt"):
        lines = (embedded / part).read_text("utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.split("\t")[1] in RELATIONS]
        (folder / part).write_text("".join(kept), "utf-8")
    return folder


@pytest.fixture(scope="module")
def reasoner(nations: Path) -> Reasoner:
    return train(nations, nations.with_name("run"), config=CONFIG)


QUESTIONS = [
    ("usa", "embassy", None),
    (None, "embassy", "usa"),
    ("usa", None, "uk"),
    ("uk", "embassy", "?"),
    ("usa", "embassy", None),
    ("usa", None, "china"),
    {"head": "cuba", "relation": "treaties"},
]


def test_answers_do_not_depend_on_what_else_is_asked(reasoner: Reasoner):
    together = list(reasoner.answer_many(QUESTIONS, k=4))
    assert len(together) == len(QUESTIONS)
    for question, answers in zip(QUESTIONS, together, strict=True):
        (alone,) = reasoner.answer_many([question], k=4)
        assert answers == alone
    fresh = Reasoner.from_pretrained(reasoner.folder, threads=1)
    assert fresh.answer(head="usa", relation="embassy", k=4) == together[0]
    assert together[2].asks_for == "relation"
    assert together[1].head is None
    assert together[6].relation == "treaties"


def test_probabilities_are_calibrated_and_follow_the_scores(reasoner: Reasoner):
    answers = reasoner.answer(head="usa", relation="embassy", k=14)
    assert answers.probability_kind == "calibrated"
    probabilities = [answer.probability for answer in answers.answers]
    assert probabilities == sorted(probabilities, reverse=True)
    assert [a.score for a in answers.answers] == sorted(
        (a.score for a in answers.answers), reverse=True
    )
    own = dataclasses.replace(reasoner_bundle(reasoner), calibration=None)
    plain = Reasoner(own, reasoner.graph, reasoner.dataset.test.known, threads=1)
    uncalibrated = plain.answer(head="usa", relation="embassy", k=14)
    assert uncalibrated.probability_kind == "model"
    assert sum(a.probability for a in uncalibrated.answers) == pytest.approx(1.0)
    assert [a.name for a in uncalibrated.answers] == [a.name for a in answers.answers]
    plain.calibrate()  # takes effect at once, and is what training had made
    assert plain.answer(head="usa", relation="embassy", k=14) == answers


def reasoner_bundle(reasoner: Reasoner):
    from knowformer.runs.folder import load_bundle

    return load_bundle(reasoner.folder)


def test_a_relation_has_the_probability_that_the_tail_has(reasoner: Reasoner):
    relations = reasoner.answer(head="usa", tail="uk", k=55)
    assert len(relations.answers) == len(RELATIONS)
    for answer in relations.answers:
        tails = reasoner.answer(head="usa", relation=answer.name, k=14)
        (same,) = [one for one in tails.answers if one.name == "uk"]
        assert same.probability == pytest.approx(answer.probability, abs=1e-6)
        assert same.known == answer.known
    assert sum(answer.share for answer in relations.answers) == pytest.approx(1.0)
    shares = [answer.share for answer in relations.answers]
    assert shares == sorted(shares, reverse=True)


def test_relation_questions_with_other_heads_are_answered_side_by_side_and_alike(
    reasoner: Reasoner, monkeypatch: pytest.MonkeyPatch
):
    asked = [(h, None, t) for h in ("usa", "uk", "cuba") for t in ("china", "usa")]
    monkeypatch.setattr(relation_evidence, "QUERIES", 4)
    fresh = Reasoner.from_pretrained(reasoner.folder, threads=1)
    passes: list[tuple[int, int]] = []
    questions = [fresh.question(head=h, tail=t) for h, _, t in asked]
    together = fresh._answerer.answer(
        questions, Options(k=55), progress=lambda *counts: passes.append(counts)
    )
    wanted = (3 + 2) * len(RELATIONS)
    assert passes[-1] == (wanted, wanted)  # a pass per relation and distinct head, or tail
    assert len(passes) > 4  # a long wait is told
    for (head, _, tail), answers in zip(asked, together, strict=True):
        alone = Reasoner.from_pretrained(reasoner.folder, threads=1).answer(
            head=head, tail=tail, k=55
        )
        assert answers == alone
    monkeypatch.setattr(relation_evidence, "QUERIES", 7)
    other = Reasoner.from_pretrained(reasoner.folder, threads=1)
    assert list(other.answer_many(asked, k=55)) == together


def test_many_answers_may_be_looked_at_twice(reasoner: Reasoner):
    many = reasoner.answer_many(QUESTIONS, k=2)
    assert list(many) == list(many)
    assert "to_pandas" in repr(many)
    once = reasoner.answer_many((question for question in QUESTIONS), k=2)
    assert len(list(once)) == len(QUESTIONS)


def test_results_print_as_tables(reasoner: Reasoner):
    answers = reasoner.answer(head="usa", relation="embassy", k=3)
    text = str(answers)
    assert "(usa, embassy, ?)" in text
    assert answers.answers[2].name in text
    assert repr(answers) == text
    assert "MRR" in str(reasoner.evaluate("valid"))
    assert "trained on 'nations'; answers on 14 entities, 6 relations" in repr(reasoner)
    missing = reasoner.missing_facts("embassy", k=2)
    assert "relation" not in str(missing).partition("probabilities are")[0]  # it is in the title
    assert "relation" in missing.table().columns[2].name


def test_samples_add_a_spread_and_change_nothing_else(reasoner: Reasoner):
    for question in ({"head": "usa", "relation": "embassy"}, {"head": "usa", "tail": "uk"}):
        plain = reasoner.answer(**question, k=5)
        spread = reasoner.answer(**question, k=5, samples=4)
        stripped = [dataclasses.replace(answer, spread=None) for answer in spread.answers]
        assert stripped == plain.answers
        for answer in spread.answers:
            assert answer.spread is not None
            assert answer.spread.samples == 4
            assert answer.spread.top_k_share in {0.25, 0.5, 0.75, 1.0}
            assert answer.spread.score_deviation > 0
            assert abs(answer.spread.score_mean - answer.score) < 4 * answer.spread.score_deviation


def test_missing_facts_are_the_best_over_all_questions(reasoner: Reasoner):
    found = reasoner.missing_facts("embassy", k=7)
    facts = [
        (answer.probability, head, answer.name)
        for head in reasoner.graph.entities
        for answer in reasoner.answer(head=head, relation="embassy", k=14, new_only=True).answers
    ]
    best = sorted(facts, reverse=True)[:7]
    assert [f.probability for f in found.facts] == pytest.approx([p for p, _, _ in best], abs=1e-9)
    assert [f.rank for f in found.facts] == list(range(1, 8))
    known = {(h, t) for h, r, t in named_facts(reasoner) if r == "embassy"}
    assert not known & {(f.head, f.tail) for f in found.facts}
    assert found.num_candidates == 14 * found.num_questions - len(known)
    swept = reasoner.missing_facts("embassy", k=3, sweep="tails", every_entity=True)
    assert swept.num_questions == 14
    (head,) = [
        a
        for a in reasoner.answer(relation="embassy", tail=swept.facts[0].tail, k=14).answers
        if a.name == swept.facts[0].head
    ]
    assert head.probability == pytest.approx(swept.facts[0].probability, abs=1e-6)


def named_facts(reasoner: Reasoner) -> list[tuple[str, str, str]]:
    entities, relations = reasoner.graph.entities.names, reasoner.graph.relations.names
    return [(entities[h], relations[r], entities[t]) for h, r, t in reasoner.graph.facts.tolist()]


def test_new_only_leaves_out_what_is_known(reasoner: Reasoner):
    known = {t for h, r, t in named_facts(reasoner) if (h, r) == ("usa", "embassy")}
    (answers,) = reasoner.answer_many([("usa", "embassy")], k=14, new_only=True)
    assert {answer.name for answer in answers.answers} == set(reasoner.graph.entities) - known
    everything = reasoner.answer(head="usa", tail="uk", k=99)
    new = reasoner.answer(head="usa", tail="uk", k=99, new_only=True)
    assert new.answers[0].rank == 1
    assert len(new.answers) == len(everything.answers) - everything.num_known


def test_results_become_data_frames_and_notebook_tables(reasoner: Reasoner):
    pandas = pytest.importorskip("pandas")
    answers = reasoner.answer(head="usa", relation="embassy", k=3, samples=2)
    frame = answers.to_pandas()
    assert list(frame["tail"]) == [a.name for a in answers.answers]
    assert frame["known fact"].dtype == bool
    assert pandas.api.types.is_float_dtype(frame["probability"])
    many = reasoner.answer_many(QUESTIONS, k=2).to_pandas()
    assert len(many) == 2 * len(QUESTIONS)
    assert list(many["question"].unique()) == list(range(len(QUESTIONS)))
    assert many["head"].notna().all()
    missing = reasoner.missing_facts("embassy", k=4)
    assert list(missing.to_pandas()["rank"]) == [1, 2, 3, 4]
    report = reasoner.evaluate("valid")
    assert report.to_pandas().loc[0, "MRR"] == report.mrr
    for result in (answers, missing, report):
        assert result._repr_html_().count("<tr>") == len(result.table().rows) + 1


@pytest.mark.parametrize(
    ("question", "error", "says"),
    [
        (("usa", "embasy", None), VocabularyError, "'embassy'"),
        (("usa", "embassy", "uk"), ConfigError, "got 3"),
        (("usa",), ConfigError, "Expected a question"),
        ({"head": "usa", "relatoin": "embassy"}, ConfigError, "'relatoin'"),
        (("usa", 3, None), ConfigError, "name as relation, got 3"),
        ("usa", ConfigError, "Expected a question"),
    ],
)
def test_a_bad_question_is_refused(
    question: object, error: type[Exception], says: str, reasoner: Reasoner
):
    with pytest.raises(error, match=says):
        list(reasoner.answer_many([question]))


def test_impossible_numbers_are_refused(reasoner: Reasoner):
    with pytest.raises(ConfigError, match="positive number of answers, got 0"):
        reasoner.answer(head="usa", relation="embassy", k=0)
    with pytest.raises(ConfigError, match="positive number of samples, got 0"):
        reasoner.answer(head="usa", relation="embassy", samples=0)
    with pytest.raises(ConfigError, match="got -1"):
        reasoner.missing_facts("embassy", k=-1)


def test_a_relation_without_facts_has_no_heads_to_ask(reasoner: Reasoner, tmp_path: Path):
    graph = tmp_path / "small.tsv"
    graph.write_text("a\tembassy\tb\n", "utf-8")
    other = Reasoner.from_pretrained(reasoner.folder, graph=graph, threads=1)
    with pytest.raises(DataError, match="'treaties', which has none there"):
        other.missing_facts("treaties")
    assert len(other.missing_facts("treaties", every_entity=True).facts) == 4


def test_a_small_run_goes_without_calibration_and_says_so(
    ring: Dataset, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    with caplog.at_level("INFO", logger="knowformer"):
        small = train(ring, tmp_path / "run", config=CONFIG)
    assert "not calibrated" in caplog.text
    assert small.calibration is None
    assert not (tmp_path / "run" / "calibration.json").exists()
    assert small.answer(head="place00", relation="next").probability_kind == "model"
    with pytest.raises(DataError, match="at least 20 validation facts"):
        small.calibrate()


@pytest.fixture(scope="module")
def in_views(nations: Path) -> Reasoner:
    """A model whose queries see 6 of 14 nations."""
    seen = SMALL.model_copy(update={"view_size": 6})
    config = CONFIG.model_copy(update={"model": seen})
    return train(nations, nations.with_name("run in views"), config=config)


def test_a_run_remembers_its_view_and_answers_with_it(in_views: Reasoner):
    again = Reasoner.from_pretrained(in_views.folder, threads=1)
    assert again.config.model.view_size == 6
    answers = again.answer(head="usa", relation="embassy", k=14)
    assert 1 < len(answers.answers) <= 6
    assert answers.num_candidates == 14
    assert answers == in_views.answer(head="usa", relation="embassy", k=14)


def test_in_views_answers_do_not_depend_on_what_else_is_asked(in_views: Reasoner):
    together = list(in_views.answer_many(QUESTIONS, k=4))
    for question, answers in zip(QUESTIONS, together, strict=True):
        (alone,) = in_views.answer_many([question], k=4)
        assert answers == alone


def test_a_known_fact_is_known_wherever_the_view_ends(in_views: Reasoner):
    for head, relation, tail in named_facts(in_views)[:40]:
        answers = in_views.answer(head=head, tail=tail, k=55)
        (asked,) = [answer for answer in answers.answers if answer.name == relation]
        assert asked.known
        assert 0.0 <= asked.probability <= 1.0


def test_in_views_missing_facts_are_found_and_evaluation_reports_coverage(in_views: Reasoner):
    assert len(in_views.missing_facts("embassy", k=5).facts) == 5
    report = in_views.evaluate("valid")
    assert report.view is not None
    assert 0.2 < report.view.coverage < 1.0
    assert report.view.mrr_inside > report.view.mrr_outside
    assert "a query sees 6 entities" in report.table().caption
