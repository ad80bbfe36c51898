"""Run folders that somebody damaged, or made up."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from tests.hostile.case import Case, Place

FILES = (
    "config.toml",
    "dataset.json",
    "facts.safetensors",
    "model.safetensors",
    "checkpoint.safetensors",
    "metrics.json",
    "calibration.json",
    "events.jsonl",
)
ANSWER = ("answer", "run", "--head", "f0_ann", "--relation", "parent_of", "--threads", "1")
EVALUATE = ("evaluate", "run", "--threads", "1")
RESUME = ("train", "--resume", "run", "--threads", "1")
MORE = (*RESUME, "--max-epochs", "2")
READ_BY = {
    "checkpoint.safetensors": (RESUME,),
    "events.jsonl": (RESUME, MORE),
    "metrics.json": (EVALUATE, RESUME),
}

Damage = Callable[[Place, Path], None]


def _link_outside(place: Place, path: Path) -> None:
    target = place.outside / path.name
    path.rename(target)
    path.symlink_to(target)


def _flip(place: Place, path: Path, at: float) -> None:
    del place
    content = bytearray(path.read_bytes())
    content[int(at * (len(content) - 1))] ^= 0xFF
    path.write_bytes(content)


def _replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 * 2**30)


DAMAGES: dict[str, Damage] = {
    "missing": lambda _, path: path.unlink(),
    "empty": lambda _, path: path.write_bytes(b"") and None,
    "half": lambda _, path: (
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]) and None
    ),
    "noise": lambda _, path: path.write_bytes(bytes(range(256)) * 4) and None,
    "not UTF-8": lambda _, path: path.write_bytes(b"\xff\xfe{}\n") and None,
    "zeros": lambda _, path: path.write_bytes(bytes(4096)) and None,
    "deep": lambda _, path: path.write_bytes(b"[" * 200_000) and None,
    "braces": lambda _, path: path.write_bytes(b"{}") and None,
    "null": lambda _, path: path.write_bytes(b"null") and None,
    "a folder": lambda _, path: _replace(path, Path.mkdir),
    "a pipe": lambda _, path: _replace(path, os.mkfifo),
    "a device": lambda _, path: _replace(path, lambda p: p.symlink_to("/dev/zero")),
    "a broken link": lambda _, path: _replace(path, lambda p: p.symlink_to("nowhere")),
    "a link to itself": lambda _, path: _replace(path, lambda p: p.symlink_to(p.name)),
    "a link outside": _link_outside,
    "first byte": lambda place, path: _flip(place, path, 0.0),
    "ninth byte": lambda place, path: _flip(place, path, 0.02),
    "middle byte": lambda place, path: _flip(place, path, 0.5),
    "last byte": lambda place, path: _flip(place, path, 1.0),
    "three gigabytes": lambda _, path: _sparse(path),
}

ODD_VALUES: dict[str, Any] = {
    "null": None,
    "true": True,
    "minus one": -1,
    "10^30": 10**30,
    "1.5": 1.5,
    "1e308": 1e308,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "a long word": "x" * 100_000,
    "a surrogate": "\ud800",
    "control characters": "\x1b[31m\n$\\frac{",
    "an empty list": [],
    "an empty object": {},
    "a nest": [[[[[[]]]]]],
}


def _set(content: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        content = content[key]
    content[path[-1]] = value


def _json_case(file: str, path: tuple[Any, ...], odd: str, command: tuple[str, ...]) -> Case:
    def prepare(place: Place) -> list[Any]:
        target = place.copy_run() / file
        content = json.loads(target.read_text("utf-8"))
        _set(content, path, ODD_VALUES[odd])
        target.write_text(json.dumps(content), "utf-8")
        return list(command)

    return Case(f"{file} {'.'.join(map(str, path))}: {odd}; {command[0]}", prepare)


JSON_PATHS: dict[str, list[tuple[Any, ...]]] = {
    "dataset.json": [
        ("format_version",), ("name",), ("relations",), ("relations", 0), ("graphs",),
        ("graphs", 0), ("graphs", 0, 3), ("graph_of_split",), ("graph_of_split", "test"),
        ("entity_names",),
    ],
    "metrics.json": [
        ("best_validation",), ("best_validation", "step"), ("best_validation", "valid_mrr"),
        ("best_validation", "num_facts"), ("validation_baselines",),
        ("validation_baselines", "rules"),
    ],
    "calibration.json": [
        ("format_version",), ("coefficients",), ("coefficients", "score"), ("pooled",),
        ("pooled", "kind"), ("log_loss",), ("fitted_on",), ("weights_sha256",), ("lines",),
        ("relation_choice",),
    ],
}  # fmt: skip


def _facts_case(name: str, what: str, change: Callable[[Tensor], Tensor | None]) -> Case:
    def prepare(place: Place) -> list[Any]:
        path = place.copy_run() / "facts.safetensors"
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
        changed = change(tensors.pop(name))
        save_file(tensors | ({} if changed is None else {name: changed.contiguous()}), path)
        return list(EVALUATE)

    return Case(f"facts.safetensors {name}: {what}", prepare)


def _with(column: int, value: int) -> Callable[[Tensor], Tensor]:
    def change(facts: Tensor) -> Tensor:
        facts[len(facts) // 2, column] = value
        return facts

    return change


FACTS: dict[str, Callable[[Tensor], Tensor | None]] = {
    "head one beyond": _with(0, 96),
    "head far beyond": _with(0, 2**31 - 1),
    "head negative": _with(0, -1),
    "relation beyond": _with(1, 3),
    "relation negative": _with(1, -1),
    "tail far negative": _with(2, -(2**31)),
    "float": lambda facts: facts.float(),
    "uint64": lambda facts: facts.to(torch.uint64),
    "bool": lambda facts: facts.bool(),
    "two columns": lambda facts: facts[:, :2],
    "flat": lambda facts: facts.flatten(),
    "no rows": lambda facts: facts[:0],
    "missing": lambda _: None,
}
TENSORS = ("graph.0", "train.facts", "train.known", "valid.facts", "test.facts", "test.known")


def _weights_case(file: str, what: str, command: tuple[str, ...]) -> Case:
    def prepare(place: Place) -> list[Any]:
        path = place.copy_run() / file
        with safe_open(path, framework="pt") as opened:
            metadata = opened.metadata()
            tensors = {key: opened.get_tensor(key).clone() for key in opened.keys()}  # noqa: SIM118
        name = sorted(tensors)[len(tensors) // 2]
        changed = {
            "NaN": lambda t: torch.full_like(t, torch.nan),
            "infinite": lambda t: torch.full_like(t, torch.inf),
            "double": lambda t: t.double(),
            "integers": lambda t: t.int(),
            "another shape": lambda t: t.flatten()[:-1].clone() if t.numel() > 1 else t.repeat(3),
            "scalar": lambda _: torch.tensor(1.0),
        }
        if what in changed:
            tensors[name] = changed[what](tensors[name])
        elif what == "another name":
            tensors["stranger"] = tensors.pop(name)
        elif what == "one more":
            tensors["stranger"] = torch.zeros(3)
        elif what == "none":
            tensors = {}
        elif what == "no metadata":
            metadata = None
        elif what == "odd metadata":
            metadata = dict.fromkeys(metadata or ["link_function"], "x" * 100_000)
        save_file(tensors, path, metadata)
        return list(command)

    return Case(f"{file}: {what}; {command[0]}", prepare)


WEIGHTS = ("NaN", "infinite", "double", "integers", "another shape", "scalar", "another name",
           "one more", "none", "no metadata", "odd metadata")  # fmt: skip

COUNTERS = (
    "step", "epoch", "batch_in_epoch", "epoch_in_regions", "steps_per_epoch", "elapsed_seconds",
    "finished", "stopped", "part_step", "part_seconds", "num_valid_facts", "best_mrr", "best_step",
    "validated_step", "record_mrr", "record_reciprocal_ranks", "validations_since_record",
    "event_bytes", "recent_losses",
)  # fmt: skip


def _counter_case(field: str, odd: str) -> Case:
    def prepare(place: Place) -> list[Any]:
        path = place.copy_run() / "checkpoint.safetensors"
        with safe_open(path, framework="pt") as file:
            counters = json.loads(file.metadata()["counters"])
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
        counters[field] = ODD_VALUES[odd]
        save_file(tensors, path, {"counters": json.dumps(counters)})
        return list(RESUME)

    return Case(f"counters {field}: {odd}", prepare)


def _event_case(field: str, odd: str) -> Case:
    def prepare(place: Place) -> list[Any]:
        path = place.copy_run() / "events.jsonl"
        events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        events[0][field] = ODD_VALUES[odd]
        size = path.stat().st_size
        text = "".join(json.dumps(event) + "\n" for event in events)
        path.write_text(text + " " * max(0, size - len(text)), "utf-8")
        return list(RESUME)

    return Case(f"events.jsonl {field}: {odd}", prepare)


SETTINGS = (
    "seed", "threads", "backend", "hidden_dim", "num_layers", "num_query_key_hops",
    "num_value_hops", "num_heads", "dropout", "similarity", "attention", "update_layers",
    "noise_dim", "noise_scale", "view_size", "view_alpha", "targets", "hide", "loss",
    "batch_size", "max_epochs", "learning_rate", "gradient_clip", "averaging",
)  # fmt: skip
ODD_SETTINGS = ("-1", "true", "1.5", "1e308", "nan", "inf", "100000", "1000000000", "9" * 5000,
                '"x"', "[]", "{}", "[" * 5000, "'\\ud800'", "")  # fmt: skip


def _setting_case(name: str, odd: str) -> Case:
    def prepare(place: Place) -> list[Any]:
        path = place.copy_run() / "config.toml"
        lines = path.read_text("utf-8").splitlines()
        changed = [f"{name} = {odd}" if line.startswith(f"{name} =") else line for line in lines]
        path.write_text("\n".join(changed) + "\n", "utf-8")
        return list(ANSWER)

    return Case(f"config.toml {name} = {odd[:20]}", prepare)


def _outside_cases() -> Iterator[Case]:
    """Links that lead out of the folder, from files that commands write."""
    written = (*FILES, ".training.lock", "learning_curve.png", "environment.json",
               "reliability_test.png", "tracking.json")  # fmt: skip
    for file in written:
        for command in (MORE, EVALUATE):
            for link in (os.symlink, os.link):

                def prepare(
                    place: Place, file: str = file, command: Any = command, link: Any = link
                ) -> list[Any]:
                    path = place.copy_run() / file
                    target = place.outside / "linked"
                    path.rename(target) if path.exists() else target.write_text("precious")
                    link(target, path)
                    return list(command)

                yield Case(f"{link.__name__} {file}; {command[0]}", prepare)


def _renamed_cases() -> Iterator[Case]:
    """Whole runs in folders with odd names."""
    names = {
        "not UTF-8": os.fsdecode(b"caf\xe9"),
        "a line break": "a\nb",
        "an escape": "\x1b[31mred",
        "a formula": "$\\frac{x_1",
        "markup": "[red]x",
        "long": "x" * 255,
    }
    explain = ("explain", "run", "--head", "f0_ann", "--relation", "married_to", "--tail", "f0_bob",
               "--picture", "e.png", "--threads", "1")  # fmt: skip
    for what, name in names.items():
        for command in (MORE, EVALUATE, ANSWER, explain):

            def prepare(place: Place, name: str = name, command: Any = command) -> list[Any]:
                place.copy_run().rename(place.folder / name)
                return [name if word == "run" else word for word in command]

            yield Case(f"a run in a folder whose name is {what}; {command[0]}", prepare)


def _file_cases() -> Iterator[Case]:
    for file in FILES:
        for command in READ_BY.get(file, (ANSWER, RESUME)):
            for what, damage in DAMAGES.items():

                def prepare(
                    place: Place, file: str = file, damage: Damage = damage, command: Any = command
                ) -> list[Any]:
                    damage(place, place.copy_run() / file)
                    return list(command)

                yield Case(f"{file}: {what}; {' '.join(command)}", prepare)


def cases() -> Iterator[Case]:
    """All of them."""
    yield from _file_cases()
    for file, paths in JSON_PATHS.items():
        for path in paths:
            # The data set's name is printed by an evaluation.
            command = EVALUATE if file == "metrics.json" or path == ("name",) else ANSWER
            yield from (_json_case(file, path, odd, command) for odd in ODD_VALUES)
    yield from (_facts_case(name, *change) for name in TENSORS for change in FACTS.items())
    yield from (_weights_case("model.safetensors", what, ANSWER) for what in WEIGHTS)
    yield from (_weights_case("checkpoint.safetensors", what, RESUME) for what in WEIGHTS)
    yield from (_counter_case(field, odd) for field in COUNTERS for odd in ODD_VALUES)
    fields = ("kind", "step", "loss", "elapsed_seconds")
    yield from (_event_case(field, odd) for field in fields for odd in ODD_VALUES)
    yield from (_setting_case(name, odd) for name in SETTINGS for odd in ODD_SETTINGS)
    yield from _outside_cases()
    yield from _renamed_cases()
