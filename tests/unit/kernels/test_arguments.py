import importlib
import inspect
from types import FunctionType
from typing import Any

import pytest
import torch

from knowformer.errors import KnowformerError
from knowformer.kernels._arguments import DTYPES, NUMBERS, TABLE, arguments_of, check_call, size_of

compiling = pytest.importorskip("knowformer.kernels._cpu_compile")

SIZES = {"D": 16, "C": 4, "H": 4, "BLOCK": 48}


def kernels() -> dict[str, FunctionType]:
    """Returns the plain functions of the kernels' files: whatever they call is compiled."""
    modules = [importlib.import_module(f"knowformer.kernels.{name}") for name in compiling.MODULES]
    return {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if isinstance(function, FunctionType) and function.__module__ == module.__name__
    }


def test_every_kernel_has_a_table_and_every_table_a_kernel() -> None:
    assert kernels().keys() == TABLE.keys()


@pytest.mark.parametrize("kernel", TABLE)
def test_a_kernels_parameters_are_those_of_its_table(kernel: str) -> None:
    arguments = arguments_of(kernel)
    assert list(inspect.signature(kernels()[kernel]).parameters) == [a.name for a in arguments]
    for argument in arguments:
        assert argument.kind in {*DTYPES, *NUMBERS}
        assert argument.mark in {"", "maybe", "scratch"}
        assert bool(argument.size) == (argument.kind not in NUMBERS)


@pytest.mark.parametrize("kernel", TABLE)
def test_the_size_of_scratch_is_known_before_the_call(kernel: str) -> None:
    known = dict.fromkeys(SIZES, 1)
    known |= {a.name: 1 for a in arguments_of(kernel) if a.kind == "number"}
    for argument in arguments_of(kernel):
        if argument.mark == "scratch":
            assert size_of(argument.size, known) > 0


def test_a_size_is_a_sum_of_products() -> None:
    assert size_of("12", {}) == 12
    assert size_of("num_maps*D+num_maps", {"num_maps": 3, "D": 16}) == 51
    assert size_of("8*BLOCK*H+H", SIZES) == 8 * 48 * 4 + 4
    with pytest.raises(KeyError, match="rows"):
        size_of("2*rows", SIZES)


def hop_call() -> dict[str, Any]:
    """Returns the arguments of a call of ``hop_forward``: two queries on a graph of seven edges."""
    return {
        "states": torch.zeros(10, 16),
        "relation_vectors": torch.zeros(2, 4, 16),
        "offsets": torch.zeros(6, dtype=torch.int32),
        "sender": torch.zeros(7, dtype=torch.int32),
        "relation": torch.zeros(7, dtype=torch.int32),
        "segments": torch.tensor([0, 5, 10]),
        "starts": torch.tensor([0, 0]),
        "vectors": torch.zeros(5, 16),
        "matrices": torch.zeros(2, 16, 16),
        "out": torch.zeros(10, 16),
        "num_queries": 2,
        "num_relations": 4,
        "num_maps": 2,
        "norm": 1,
        "keep": 0,
        "first_row": 0,
        "last_row": 5,
    }


def test_arguments_that_fit_the_table_are_accepted() -> None:
    check_call("hop_forward", hop_call(), **SIZES)
    check_call("hop_forward", hop_call() | {"pre": torch.zeros(10, 16)}, **SIZES)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("states", "relation_vectors"),
        ("offsets", "sender"),
        ("segments", "starts"),
        ("segments", "offsets"),
        ("vectors", "matrices"),
        ("out", "matrices"),
    ],
)
def test_arguments_that_changed_places_are_refused(first: str, second: str) -> None:
    call = hop_call()
    call[first], call[second] = call[second], call[first]
    with pytest.raises(KnowformerError, match=r"of kernel hop_forward, got"):
        check_call("hop_forward", call, **SIZES)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sender", torch.zeros(6, dtype=torch.int32)),
        ("sender", torch.zeros(7, dtype=torch.int64)),
        ("segments", torch.tensor([0, 5, 10], dtype=torch.int32)),
        ("states", torch.zeros(10, 16, dtype=torch.float64)),
        ("states", torch.zeros(10, 15)),
        ("states", torch.zeros(16, 10).T),
        ("out", torch.zeros(9, 16)),
        ("pre", torch.zeros(11, 16)),
        ("num_relations", 5),
        ("num_queries", 1),
        ("num_maps", 3),
    ],
)
def test_an_argument_of_another_size_type_or_layout_is_refused(name: str, value: object) -> None:
    with pytest.raises(KnowformerError, match=r"Expected .* of kernel hop_forward, got"):
        check_call("hop_forward", hop_call() | {name: value}, **SIZES)


def test_an_argument_that_is_left_out_is_named() -> None:
    call = hop_call()
    del call["sender"]
    with pytest.raises(KnowformerError, match="Expected sender for kernel hop_forward, found none"):
        check_call("hop_forward", call, **SIZES)


def test_tests_check_every_call_of_a_compiled_kernel() -> None:
    kernel = compiling.compiled_kernel("score_forward", 16)
    states, out = torch.zeros(3, 16), torch.full((3,), torch.nan)
    call = {"vectors": torch.zeros(2, 16), "matrices": torch.zeros(16, 16), "first_row": 0}
    with pytest.raises(KnowformerError, match=r"N = 3 float32 .* out of kernel score_forward"):
        kernel(**call, states=states, out=torch.zeros(2), last_row=3, bias=0.5)
    kernel(**call, states=states, out=out, last_row=3, bias=0.5)
    assert out.tolist() == [0.5] * 3
