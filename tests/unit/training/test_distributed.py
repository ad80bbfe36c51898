"""Several processes as threads of this one, each with a gloo group of its own.

The messages are real. ``tests/integration/test_torchrun.py`` starts processes.
"""

import importlib
import logging
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor

from knowformer.data.dataset import Dataset
from knowformer.errors import ConfigError, DataError, NonFiniteLossError, ProcessLostError
from knowformer.system.workers import shared_workers
from knowformer.training import distributed
from knowformer.training.clock import Clock
from knowformer.training.config import RunConfig
from knowformer.training.distributed import Processes, join, processes_of
from knowformer.training.loop import Trainer
from knowformer.training.peers import Peers
from knowformer.training.settings_file import parse_config

Result = TypeVar("Result")
gloo: Any = importlib.import_module("torch.distributed")
TIMEOUT = timedelta(seconds=300)


class Group:
    """``torch.distributed`` for one thread."""

    def __init__(self, store: Any, number: int, size: int) -> None:
        self._gloo = gloo.ProcessGroupGloo(store, number, size, TIMEOUT)

    def isend(self, tensor: Tensor, to: int, tag: int = 0) -> Any:
        assert not tag
        return self._gloo.send([tensor], to, 0)

    def recv(self, tensor: Tensor, sender: int) -> None:
        self._gloo.recv([tensor], sender, 0).wait()


def together(size: int, work: Callable[[Processes, int], Result]) -> list[Result]:
    """Runs work on several processes that know one another; returns what each has come to."""
    store = gloo.HashStore()

    everyone: list[Peers] = []  # until all are done: who is dropped hangs up

    def take_part(number: int) -> Result:
        group = Group(gloo.PrefixStore("gloo", store), number, size)
        peers = Peers(group, store, number=number, size=size)
        everyone.append(peers)
        return work(processes_of(peers, number=number, size=size), number)

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(take_part, range(size)))


def test_one_process_is_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORLD_SIZE", "1")
    join.cache_clear()
    alone, clock, workers = join(), Clock(), shared_workers(1)
    join.cache_clear()
    assert alone.sharing(workers) is workers
    assert alone.clock(clock) is clock
    assert alone.threads(0) == 0
    assert alone.agree(True)
    assert alone.by_leader(print) is print
    assert list(alone.in_turn.imap(lambda n: [torch.tensor(n)], [1, 2])) == [[1], [2]]
    assert alone.follow(lambda _: 1) is None
    alone.send_files([tmp_path / "nothing"])
    alone.check_same({})


@pytest.mark.parametrize("size", [2, 3])
def test_all_get_the_results_of_all_in_the_order_of_the_pieces(size: int) -> None:
    made: list[tuple[int, int]] = []

    def work(processes: Processes, number: int) -> list[list[float]]:
        def square(item: int) -> Sequence[Tensor]:
            made.append((item, number))
            return [torch.tensor(float(item)), torch.full((item,), float(item) ** 2)]

        shared = processes.sharing(shared_workers(1)).imap(square, range(7))
        return [torch.cat([value.view(1), *rest]).tolist() for value, *rest in shared]

    expected = [[float(n), *[float(n) ** 2] * n] for n in range(7)]
    assert together(size, work) == [expected] * size
    assert sorted(made) == [(item, item % size) for item in range(7)]


def test_fewer_pieces_than_processes() -> None:
    def work(processes: Processes, _: int) -> list[float]:
        pool = processes.in_turn
        return [value.item() for (value,) in pool.imap(lambda n: [torch.tensor(n)], [5.0])]

    assert together(3, work) == [[5.0]] * 3


def test_the_leader_decides_and_its_clock_stands_still_between_ticks() -> None:
    def work(processes: Processes, number: int) -> tuple[bool, list[float]]:
        moments = iter([0.0, *(100.0 * number + second for second in (1.0, 2.0, 3.0))])
        clock = processes.clock(Clock(lambda: next(moments)))
        clock.tick()
        shown = [clock.elapsed(), clock.elapsed()]
        clock.tick()
        shown.append(clock.elapsed())
        clock.release()
        return processes.agree(number == 0), [*shown, clock.elapsed() - 100.0 * number]

    assert together(3, work) == [(True, [1.0, 1.0, 2.0, 3.0])] * 3


def test_files_of_the_leader_arrive_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "CHUNK", 1000)
    content = {"facts": bytes(range(256)) * 10, "empty": b""}
    for name, written in content.items():
        (tmp_path / name).write_bytes(written)

    def work(processes: Processes, number: int) -> list[int]:
        if number == 0:
            paths = [tmp_path / name for name in (*content, "not there")]
            processes.send_files(paths, told=[1, 0, 77])
            return [1, 0, 77]
        folder = tmp_path / str(number)
        folder.mkdir()
        return processes.receive_files(folder)

    assert together(3, work) == [[1, 0, 77]] * 3
    for number in ("1", "2"):
        found = {path.name: path.read_bytes() for path in (tmp_path / number).iterdir()}
        assert found == content


def test_another_version_is_refused(tmp_path: Path) -> None:
    class OfAnotherVersion(Peers):
        def receive(self, sender: int) -> list[Tensor]:
            version = torch.tensor(list(b"0.0.9"), dtype=torch.uint8)
            return [version, torch.tensor([0])] if sender == 0 else []

    peers = OfAnotherVersion(None, gloo.HashStore(), number=1, size=2)
    with pytest.raises(ConfigError, match="Install the same version"):
        processes_of(peers, number=1, size=2).receive_files(tmp_path)


def test_weights_that_differ_are_refused() -> None:
    def work(processes: Processes, number: int) -> str:
        processes.check_same({"weight": torch.ones(3)})
        with pytest.raises(ConfigError) as error:
            processes.check_same({"weight": torch.ones(3) + (number == 1) * 1e-7})
        return str(error.value)

    assert all("rank 1" in said for said in together(3, work))


def test_only_the_leader_calls_what_is_the_leaders(tmp_path: Path) -> None:
    def work(processes: Processes, number: int) -> None:
        processes.by_leader((tmp_path / str(number)).mkdir)()

    together(3, work)
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_cores_are_shared_by_the_processes_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "3")
    monkeypatch.setattr(distributed, "available_cores", lambda: 8)
    processes = processes_of(Peers(None, gloo.HashStore(), number=0, size=3), number=0, size=3)
    assert processes.threads(0) == 2
    assert processes.threads(5) == 5


def following() -> Processes:
    return processes_of(Peers(None, gloo.HashStore(), number=1, size=2), number=1, size=2)


@pytest.fixture
def signals_as_they_were() -> Any:
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
    level = logging.getLogger("knowformer").level
    yield
    logging.getLogger("knowformer").setLevel(level)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals_as_they_were")
def test_who_follows_is_silent_about_what_the_leader_says() -> None:
    def fail(_: Processes) -> None:
        raise NonFiniteLossError(step=1, loss=1.0, batch="a batch")

    with pytest.raises(SystemExit) as ended:
        following().follow(fail)
    assert ended.value.code == 1


@pytest.mark.usefixtures("signals_as_they_were")
def test_who_follows_names_itself_in_its_own_errors() -> None:
    def fail(_: Processes) -> None:
        raise DataError("Expected memory.")

    with pytest.raises(DataError, match=r"^Rank 1 of 2: Expected memory\.$"):
        following().follow(fail)


def test_a_leader_that_fails_has_left_with_a_word() -> None:
    store = gloo.HashStore()
    leader = processes_of(Peers(None, store, number=0, size=2), number=0, size=2)
    with pytest.raises(DataError), leader.leading():
        raise DataError("Expected a graph.")
    assert Peers(None, store, number=1, size=2).lost(0) is None


def test_a_process_that_is_gone_is_named() -> None:
    class Broken:
        def isend(self, _: Tensor, to: int, tag: int = 0) -> None:
            raise RuntimeError(f"Connection closed by {to}, {tag}")

    peers = Peers(Broken(), gloo.HashStore(), number=0, size=2)
    with pytest.raises(ProcessLostError, match="rank 1"):
        peers.send([torch.ones(1)])
    # Wherever the leader is when torchrun ends it, as the other has died.
    with pytest.raises(ProcessLostError, match="rank 1"), _leading(peers):
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def _leading(peers: Peers) -> AbstractContextManager[None]:
    return processes_of(peers, number=0, size=2).leading()


def test_a_leader_that_is_ended_with_the_others_says_nothing() -> None:
    class Reachable:
        def isend(self, *_: Any, **__: Any) -> None:
            pass

    store = gloo.HashStore()
    peers = Peers(Reachable(), store, number=0, size=2)
    with pytest.raises(SystemExit) as ended, _leading(peers):
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 128 + signal.SIGTERM
    assert Peers(None, store, number=1, size=2).lost(0) is None


def config_of(view_size: int) -> RunConfig:
    model = {"hidden_dim": 16, "num_layers": 1, "num_query_key_hops": 1, "num_value_hops": 2}
    training = {"batch_size": 8, "max_epochs": 1, "warmup_steps": 2, "validations_per_epoch": 2}
    settings: dict[str, Any] = {
        "model": model | {"num_heads": 4, "view_size": view_size},
        "training": training,
        "threads": 1,
    }
    return parse_config(settings, where="test")


@pytest.mark.parametrize("view_size", [0, 8])
def test_weights_have_the_same_bits_on_any_number_of_processes(
    ring: Dataset, tmp_path: Path, view_size: int
) -> None:
    splits, config = ring.for_training(), config_of(view_size)

    def work(processes: Processes, number: int) -> tuple[dict[str, Tensor], float]:
        folder = tmp_path / f"{id(processes)}-{number}"
        folder.mkdir()
        trainer = Trainer(splits, config, folder, processes=processes)
        trainer.run()
        assert (folder / "checkpoint.safetensors").exists() == (number == 0)
        return trainer.model.state_dict(), trainer.counters.record_mrr

    weights, mrr = work(Processes(), 0)
    for size in (2, 3):
        for found, record in together(size, work):
            assert record == mrr
            assert all(torch.equal(value, weights[name]) for name, value in found.items())
