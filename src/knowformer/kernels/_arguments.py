"""The arguments of every kernel: one table that signatures, calls and checks are made from.

Each line names an argument, its kind and how many there are of it:
    rows      rows of D floats        heads     rows of C floats, one head's
    int32, int64, float32, uint8      plain arrays
    number    an integer              real      a float
A size is a sum of products of numbers and names. A name is one of the kernel's own numbers, D, C or
BLOCK, or stands for whatever length its first array has; all other arrays must then agree with it.
Arguments marked ``scratch`` are made by the call itself; those marked ``maybe`` may be left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from knowformer.errors import KnowformerError

TABLE = {
    "hop_forward": """
        states            rows   N
        relation_vectors  rows   num_queries*num_relations
        offsets           int32  V+1
        sender            int32  E
        relation          int32  E
        segments          int64  num_queries+1
        starts            int64  num_queries
        vectors           rows   K
        matrices          rows   num_maps*D
        pre               rows   N  maybe
        out               rows   N
        prepared          rows   num_maps*D+num_maps  scratch
        scratch           rows   4*BLOCK  scratch
        num_queries       number
        num_relations     number
        num_maps          number
        norm              number
        keep              number
        first_row         number
        last_row          number
    """,
    "hop_backward": """
        states              rows   N
        relation_vectors    rows   num_queries*num_relations
        pre                 rows   N
        gradient            rows   N
        sender_offsets      int32  V+1
        message_offsets     int32  M+1
        message_relation    int32  M
        receiver            int32  E
        segments            int64  num_queries+1
        starts              int64  num_queries
        vectors             rows   K
        matrices            rows   num_maps*D
        d_states            rows   N
        d_relation_vectors  rows   num_queries*num_relations
        d_vectors           rows   K
        d_matrices          rows   num_maps*D
        prepared            rows   num_maps*D+num_maps  scratch
        transposed          rows   num_maps*D  scratch
        d_pre               rows   max_rows  scratch
        scratch             rows   5*BLOCK  scratch
        num_queries         number
        num_relations       number
        num_maps            number
        norm                number
        max_rows            number
    """,
    "input_forward": """
        states       rows   N  maybe
        extra        rows   X
        segments     int64  num_queries+1
        starts       int64  num_queries
        heads        int64  num_queries
        vectors      rows   1+marks_head
        matrices     rows   2*D
        out          rows   N
        scratch      rows   2*BLOCK  scratch
        num_queries  number
        shared       number
        has_states   number
        marks_head   number
        first_row    number
        last_row     number
    """,
    "input_backward": """
        states       rows   N  maybe
        extra        rows   X
        segments     int64  num_queries+1
        starts       int64  num_queries
        heads        int64  num_queries
        vectors      rows   1+marks_head
        matrices     rows   2*D
        gradient     rows   N
        d_states     rows   N  maybe
        d_extra      rows   X
        d_vectors    rows   1+marks_head
        d_matrices   rows   2*D
        transposed   rows   2*D  scratch
        scratch      rows   4*BLOCK  scratch
        num_queries  number
        shared       number
        has_states   number
        marks_head   number
    """,
    "near_heads_forward": """
        background        rows   num_entities*hops+num_entities
        relation_vectors  rows   hops*num_relations
        offsets           int32  num_entities+1
        sender            int32  E
        relation          int32  E
        sender_offsets    int32  num_entities+1
        message_offsets   int32  M+1
        receiver          int32  E
        heads             int64  num_queries
        extra             rows   1
        start_vectors     rows   2
        start_matrices    rows   2*D
        vectors           rows   hops*num_vectors
        matrices          rows   hops*num_maps*D
        position          int32  num_entities
        out               rows   num_queries*num_entities
        order             int32  num_entities  scratch
        counts            int32  hops+1  scratch
        near              rows   num_entities  scratch
        far               rows   num_entities  scratch
        prepared          rows   num_maps*D+num_maps  scratch
        scratch           rows   4*BLOCK  scratch
        num_queries       number
        num_entities      number
        num_relations     number
        num_vectors       number
        hops              number
        num_maps          number
        norm              number
    """,
    "attention_sums": """
        query_key     rows     N
        values        rows     N
        segments      int64    num_queries+1
        vectors       rows     8
        matrices      rows     4*D
        sums          rows     num_queries*C+2*num_queries
        partial       rows     C+2  scratch
        head_scratch  heads    2*BLOCK*H  scratch
        lengths       float32  BLOCK*H  scratch
        num_queries   number
        first_row     number
        last_row      number
    """,
    "attend_forward": """
        states        rows     N
        query_key     rows     N
        values        rows     N
        segments      int64    num_queries+1
        vectors       rows     8
        matrices      rows     4*D
        dropout       uint8    N*D  maybe
        sums          rows     num_queries*C+2*num_queries
        out           rows     N
        head_scratch  heads    8*BLOCK*H+H  scratch
        lengths       float32  BLOCK*H  scratch
        masses        float32  BLOCK*H  scratch
        num_queries   number
        first_row     number
        last_row      number
        threshold     number
        scale         real
    """,
    "attend_backward": """
        states        rows     N
        query_key     rows     N
        values        rows     N
        segments      int64    num_queries+1
        vectors       rows     8
        matrices      rows     4*D
        dropout       uint8    N*D  maybe
        sums          rows     num_queries*C+2*num_queries
        gradient      rows     N
        d_states      rows     N
        d_query_key   rows     N
        d_values      rows     N
        d_vectors     rows     8
        d_matrices    rows     4*D
        d_sums        rows     C+2  scratch
        sums_t        rows     C  scratch
        transposed    rows     4*D  scratch
        gathered      rows     BLOCK  scratch
        head_scratch  heads    8*BLOCK*H+H  scratch
        lengths       float32  BLOCK*H  scratch
        masses        float32  BLOCK*H  scratch
        num_queries   number
        threshold     number
        scale         real
    """,
    "score_forward": """
        states     rows     N
        vectors    rows     2
        matrices   rows     D
        out        float32  N
        scratch    rows     2*BLOCK  scratch
        first_row  number
        last_row   number
        bias       real
    """,
    "score_backward": """
        states      rows     num_rows
        vectors     rows     2
        matrices    rows     D
        gradient    float32  num_rows
        d_states    rows     num_rows
        d_vectors   rows     2
        d_matrices  rows     D
        transposed  rows     D  scratch
        scratch     rows     4*BLOCK  scratch
        num_rows    number
    """,
}

DTYPES = {
    "rows": torch.float32,
    "heads": torch.float32,
    "int32": torch.int32,
    "int64": torch.int64,
    "float32": torch.float32,
    "uint8": torch.uint8,
}


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel."""

    name: str
    kind: str
    size: str = ""
    mark: str = ""

    def lanes(self, sizes: Mapping[str, int]) -> int:
        """Returns how many elements one of its kind has."""
        return {"rows": sizes["D"], "heads": sizes["C"]}.get(self.kind, 1)


@cache
def arguments_of(kernel: str) -> tuple[Argument, ...]:
    """Returns a kernel's arguments in their order."""
    return tuple(Argument(*line.split()) for line in TABLE[kernel].strip().splitlines())


def size_of(expression: str, sizes: Mapping[str, int]) -> int:
    """Returns what a size comes to: a sum of products."""
    result = 0
    for term in expression.split("+"):
        product = 1
        for factor in term.split("*"):
            product *= int(factor) if factor.isdigit() else sizes[factor]
        result += product
    return result


def names_in(expression: str) -> set[str]:
    """Returns the names that a size depends on."""
    factors = expression.replace("+", "*").split("*")
    return {factor for factor in factors if not factor.isdigit()}


def check_call(kernel: str, values: Mapping[str, Tensor | float | None], **sizes: int) -> None:
    """Checks the arguments of a call against the table; tests turn it on for every call.

    Args:
        kernel: its name.
        values: the arguments by name, without scratch.
        sizes: D, C, H and BLOCK.

    Raises:
        KnowformerError: an array has another type or size than the table says, or no such argument.
    """
    known = {argument.name for argument in arguments_of(kernel) if argument.mark != "scratch"}
    if unknown := values.keys() - known:
        raise KnowformerError(f"Expected arguments of kernel {kernel}, got {sorted(unknown)}.")
    for argument in arguments_of(kernel):
        value = values.get(argument.name)
        if argument.kind == "number":
            assert isinstance(value, int)
            sizes[argument.name] = int(value)
    for argument in arguments_of(kernel):
        value = values.get(argument.name)
        if isinstance(value, Tensor):
            _check_array(kernel, argument, value, sizes)
        elif value is None and argument.mark not in {"maybe", "scratch"}:
            raise KnowformerError(f"Expected {argument.name} for kernel {kernel}, found none.")


def _check_array(kernel: str, argument: Argument, value: Tensor, sizes: dict[str, int]) -> None:
    count, rest = divmod(value.numel(), argument.lanes(sizes))
    name = argument.size.removesuffix("+1")
    if name.isidentifier() and name not in sizes:
        sizes[name] = count - (name != argument.size)
    expected = size_of(argument.size, sizes)
    as_laid_out = value.dtype == DTYPES[argument.kind] and value.is_contiguous()
    if rest or count != expected or not as_laid_out:
        raise KnowformerError(
            f"Expected {argument.size} = {expected} {argument.kind} side by side as "
            f"{argument.name} of kernel {kernel}, got {count} in {value.dtype}."
        )
