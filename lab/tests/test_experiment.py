from pathlib import Path

import pytest

from bench import SHIPPED, WriteExperiment
from knowformer.data import catalog
from knowformer.errors import ConfigError
from knowformer.training.config import RunConfig
from knowformer_lab.experiment import (
    TABLES,
    Experiment,
    choose,
    find_folder,
    load_experiments,
)
from knowformer_lab.results import Result


@pytest.fixture(scope="module")
def shipped() -> dict[str, Experiment]:
    return load_experiments(SHIPPED)


def test_every_shipped_experiment_has_a_data_set_of_the_catalogue(
    shipped: dict[str, Experiment],
) -> None:
    known = catalog.entries()
    for experiment in shipped.values():
        assert experiment.dataset in known or experiment.kind == "expressivity", experiment.name
        assert experiment.about
        assert experiment.budget or experiment.kind == "expressivity"


def test_the_papers_tables_are_all_there(shipped: dict[str, Experiment]) -> None:
    def group(table: str) -> list[Experiment]:
        return [e for e in shipped.values() if e.table == table]

    splits = {f"{d}_v{i}" for d in ("fb15k-237", "wn18rr", "nell-995") for i in (1, 2, 3, 4)}
    assert {e.dataset for e in group("inductive")} == splits
    assert {e.dataset for e in group("selection")} == splits
    assert all(e.published for e in group("inductive"))
    of_pairs = [e for e in group("homogeneous") if e.published]
    assert [e.variant for e in of_pairs] == ["pairs"] * 3
    assert all(e.config(0).training.loss == "pairs" for e in of_pairs)
    assert len([e for e in group("layers") if e.group == "wn18rr_v1"]) == 27
    assert len([e for e in group("layers") if e.published]) == 27
    assert {e.table for e in shipped.values()} == set(TABLES)


def test_published_figures_are_shares_and_hits_grow(shipped: dict[str, Experiment]) -> None:
    for experiment in shipped.values():
        metrics = experiment.published.metrics if experiment.published else {}
        assert all(0 < value < 1 for value in metrics.values()), experiment.name
        if "mrr" in metrics:
            assert metrics["hits@1"] < metrics["mrr"] < metrics["hits@10"], experiment.name


def test_studies_of_the_main_runs_share_their_training(shipped: dict[str, Experiment]) -> None:
    same = [
        ("selection/wn18rr_v1", "inductive/wn18rr_v1"),
        ("attention/fb15k-237", "transductive/fb15k-237"),
        ("paths/wn18rr_v1/attention", "inductive/wn18rr_v1"),
        ("ablation/umls/full", "transductive/umls"),
    ]
    for one, other in same:
        assert shipped[one].config(0) == shipped[other].config(0), one
    assert shipped["ablation/umls/full"].config(0) != shipped["ablation/umls/exponential"].config(0)


def test_every_stored_result_can_be_read() -> None:
    paths = list((SHIPPED / "results").rglob("*.json"))
    assert paths
    for path in paths:
        Result.model_validate_json(path.read_text("utf-8"))


def test_settings_come_from_the_data_set_the_other_file_the_file_and_the_run(
    experiments_folder: Path, write_experiment: WriteExperiment
) -> None:
    write_experiment(
        "a/base",
        'kind = "ranking"\ndataset = "fb15k-237_v1"\nminutes = 3\nseeds = [4]\n'
        "settings = { model.num_layers = 2, training.batch_size = 8 }",
    )
    write_experiment(
        "b/runs",
        'kind = "ranking"\nlike = "a/base"\nsettings = { training.batch_size = 9 }\n'
        '[[runs]]\nname = "x"\n[[runs]]\nname = "y"\nsettings = { model.num_layers = 1 }',
    )
    found = load_experiments(experiments_folder)
    assert list(found) == ["a/base", "b/runs/x", "b/runs/y"]
    config = found["b/runs/y"].config(4)
    assert config.training.edge_dropout == 0.2  # recommended for the data set
    assert (config.model.num_layers, config.training.batch_size) == (1, 9)
    assert (config.training.max_minutes, config.seed) == (3, 4)
    assert found["b/runs/x"].seeds == (4,)
    assert found["b/runs/x"].config(4).model.num_layers == 2


def test_a_search_starts_from_the_defaults(
    experiments_folder: Path, write_experiment: WriteExperiment
) -> None:
    write_experiment("search/trial", 'kind = "validation"\ndataset = "fb15k-237_v1"')
    config = load_experiments(experiments_folder)["search/trial"].config(0)
    assert config.model == RunConfig().model
    assert config.training == RunConfig().training


def test_a_grid_stands_for_every_combination(
    experiments_folder: Path, write_experiment: WriteExperiment
) -> None:
    write_experiment(
        "t/grid",
        'kind = "ranking"\ndataset = "nations"\n'
        '[[grid]]\nname = "L"\nsetting = "model.num_layers"\nvalues = [1, 2]\n'
        '[[grid]]\nname = "lr"\nsetting = "training.learning_rate"\nvalues = [0.1, 0.01]\n'
        '[published]\ntable = "T"\n[published.runs]\n"L2_lr0.1" = { mrr = 0.5 }',
    )
    found = load_experiments(experiments_folder)
    assert {e.variant for e in found.values()} == {"L1_lr0.1", "L1_lr0.01", "L2_lr0.1", "L2_lr0.01"}
    chosen = found["t/grid/L2_lr0.1"]
    assert chosen.config(0).model.num_layers == 2
    assert chosen.config(0).training.learning_rate == 0.1
    assert chosen.published is not None
    assert chosen.published.metrics == {"mrr": 0.5}
    assert found["t/grid/L1_lr0.1"].published is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "rank"\ndataset = "nations"', "kind"),
        ('kind = "ranking"\ndataset = "nations"\nbudget = 3', "budget"),
        ('kind = "ranking"', "Expected a dataset"),
        ('kind = "attention"\ndataset = "nations"', "needs some"),
        (
            'kind = "ranking"\ndataset = "nations"\n'
            '[[study.questions]]\nhead = "norms"\nrelation = "embassy"',
            "study.questions",
        ),
        ('kind = "expressivity"\ndataset = "nations"', "Expected a dataset"),
        ('kind = "ranking"\nlike = "t/other"', "'t/other'"),
        ('kind = "ranking"\nlike = "t/bad"', "another file"),
        ('kind = "ranking"\ndataset = "nations"\nsettings.model.hiden_dim = 3', "hidden_dim"),
        ('kind = "ranking"\ndataset = "nations"\n[[runs]]\nname = "../up"', "letters"),
        (
            'kind = "ranking"\ndataset = "nations"\n[[runs]]\nname = "a"\n[[runs]]\nname = "a"',
            "twice",
        ),
        ("kind =", "TOML"),
    ],
)
def test_a_file_that_cannot_be_is_refused_by_name(
    experiments_folder: Path, write_experiment: WriteExperiment, text: str, message: str
) -> None:
    write_experiment("t/bad", text)
    with pytest.raises(ConfigError, match=message) as error:
        load_experiments(experiments_folder)
    assert "bad" in str(error.value)


def test_names_stand_for_all_a_table_a_file_or_a_run(shipped: dict[str, Experiment]) -> None:
    assert len(choose(shipped, ["all"])) == len(shipped)
    assert {e.table for e in choose(shipped, ["layers"])} == {"layers"}
    assert len(choose(shipped, ["layers/wn18rr"])) == 27  # and not those of wn18rr_v1
    assert [e.name for e in choose(shipped, ["ablation/umls/full"])] == ["ablation/umls/full"]
    once = choose(shipped, ["inductive/wn18rr_v1", "inductive"])
    assert len(once) == 12
    with pytest.raises(ConfigError, match="inductive/wn18rr_v1"):
        choose(shipped, ["inductive/wn18rr_1"])


def test_experiments_are_found_here_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_experiments: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_folder() == Path("experiments")
    tiny_experiments = tiny_experiments.rename(tmp_path / "others")
    with pytest.raises(ConfigError, match="folder 'lab'"):
        find_folder()
    (tmp_path / "lab").mkdir()
    tiny_experiments = tiny_experiments.rename(tmp_path / "lab" / "experiments")
    assert find_folder() == Path("lab/experiments")
    assert find_folder(tiny_experiments) == tiny_experiments
    with pytest.raises(ConfigError, match="found none"):
        find_folder(tmp_path / "elsewhere")
