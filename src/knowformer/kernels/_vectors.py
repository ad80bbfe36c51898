"""The vector vocabulary: rows and tiles of float32 as Numba types, and the few operations on them.

A pointer to ``Lanes(D)`` is an array of rows of D floats. LLVM splits a row into whatever registers
the CPU has (four for D = 32 with AVX2, two with AVX-512), so kernels are written once, in Python,
for every width and CPU. ``Tile(M, N)`` is M rows of N accumulators that stay in registers; how many
fit depends on the CPU, and no sum's order depends on it.
"""

# Intrinsics are typed by what they are called with: their arguments have no Python types.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportUntypedFunctionDecorator=false
# pyright: reportUnusedParameter=false

from typing import Any, NamedTuple

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic

_FLOAT = ir.FloatType()
_INDEX = ir.IntType(32)


class Lanes(types.Type):
    """``count`` floats side by side."""

    def __init__(self, count: int) -> None:
        self.count = count
        super().__init__(name=f"Lanes({count})")


class Tile(types.Type):
    """``rows`` times ``count`` floats."""

    def __init__(self, rows: int, count: int) -> None:
        self.rows, self.count = rows, count
        super().__init__(name=f"Tile({rows}, {count})")


class TileShape(NamedTuple):
    """Rows and columns of a tile for matrices of one width."""

    product_rows: int  # of a matrix product; they divide the rows of a block
    outer_rows: int  # of a transposed product; they divide the width
    columns: int


# 12 accumulators of AVX2's 16 registers.
_NARROW = TileShape(product_rows=6, outer_rows=4, columns=16)
# 16 to 24 of AVX-512's 32 registers: enough to hide the latency of two multipliers.
_WIDE = {16: TileShape(12, 16, 16), 32: TileShape(8, 8, 32), 64: TileShape(6, 4, 64)}
_HAS_AVX512 = get_host_cpu_features().get("avx512f", False)


def tile_shape(width: int) -> TileShape:
    """The tile for matrices of this width on this CPU."""
    return _WIDE.get(width, _NARROW) if _HAS_AVX512 else _NARROW


def _vector(count: int) -> ir.VectorType:
    return ir.VectorType(_FLOAT, count)


@register_default(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Lanes) -> None:
        super().__init__(dmm, fe_type, _vector(fe_type.count))


@register_default(Tile)
class _TileModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Tile) -> None:
        super().__init__(dmm, fe_type, ir.ArrayType(_vector(fe_type.count), fe_type.rows))


def rows_of(count: int) -> types.CPointer:
    """The type of an array of rows, ``count`` floats each."""
    return types.CPointer(Lanes(count))


def _call(builder: Any, name: str, result: Any, arguments: list[Any], **flags: Any) -> Any:
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments, **flags)


def _fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    # fmuladd, not fma: fused where the CPU can, never a library call where it cannot.
    return _call(builder, f"llvm.fmuladd.v{a.type.count}f32", a.type, [a, b, c])


def _splat(builder: Any, scalar: Any, count: int) -> Any:
    undefined = ir.Constant(_vector(count), ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INDEX, 0))
    zeros = ir.Constant(ir.VectorType(_INDEX, count), [0] * count)
    return builder.shuffle_vector(first, undefined, zeros)


def _float_pointer(builder: Any, rows: Any, row: Any, column: Any) -> Any:
    """Address of one float: ``rows`` points to vectors, ``column`` counts floats."""
    pointer = builder.bitcast(builder.gep(rows, [row]), _FLOAT.as_pointer())
    return builder.gep(pointer, [column])


def _load(builder: Any, pointer: Any, count: int) -> Any:
    value = builder.load(builder.bitcast(pointer, _vector(count).as_pointer()))
    value.align = 4
    return value


# ---- rows ----------------------------------------------------------------------------------------


@intrinsic
def load(typing, rows, row):
    """The row at index ``row``."""

    def emit(context, builder, signature, arguments):
        value = builder.load(builder.gep(arguments[0], [arguments[1]]))
        value.align = 4
        return value

    return rows.dtype(rows, types.intp), emit


@intrinsic
def store(typing, rows, row, value):
    """Puts ``value`` at index ``row``."""

    def emit(context, builder, signature, arguments):
        builder.store(arguments[2], builder.gep(arguments[0], [arguments[1]])).align = 4

    return types.void(rows, types.intp, value), emit


@intrinsic
def at(typing, rows, row, column):
    """One float of a row."""

    def emit(context, builder, signature, arguments):
        return builder.load(_float_pointer(builder, *arguments))

    return types.float32(rows, types.intp, types.intp), emit


@intrinsic
def pick(typing, numbers, index):
    """One integer of an array."""

    def emit(context, builder, signature, arguments):
        value = builder.load(builder.gep(arguments[0], [arguments[1]]))
        return builder.sext(value, ir.IntType(64)) if value.type.width < 64 else value

    return types.intp(numbers, types.intp), emit


@intrinsic
def pick_float(typing, numbers, index):
    """One float of a plain array."""

    def emit(context, builder, signature, arguments):
        return builder.load(builder.gep(arguments[0], [arguments[1]]))

    return types.float32(numbers, types.intp), emit


@intrinsic
def put(typing, numbers, index, value):
    """Sets one float of a plain array."""

    def emit(context, builder, signature, arguments):
        builder.store(arguments[2], builder.gep(arguments[0], [arguments[1]]))

    return types.void(numbers, types.intp, types.float32), emit


@intrinsic
def put_number(typing, numbers, index, value):
    """Sets one integer of an array."""

    def emit(context, builder, signature, arguments):
        pointer = builder.gep(arguments[0], [arguments[1]])
        builder.store(builder.trunc(arguments[2], pointer.type.pointee), pointer)

    return types.void(numbers, types.intp, types.intp), emit


@intrinsic
def put_at(typing, rows, row, column, value):
    """Sets one float of a row."""

    def emit(context, builder, signature, arguments):
        builder.store(arguments[3], _float_pointer(builder, *arguments[:3]))

    return types.void(rows, types.intp, types.intp, types.float32), emit


@intrinsic
def shifted(typing, rows, count):
    """The same array from row ``count`` on."""

    def emit(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return rows(rows, types.intp), emit


@intrinsic
def strip(typing, rows, row, column):
    """As many floats of a row as a tile has columns, from ``column`` on."""
    count = tile_shape(rows.dtype.count).columns

    def emit(context, builder, signature, arguments):
        return _load(builder, _float_pointer(builder, *arguments), count)

    return Lanes(count)(rows, types.intp, types.intp), emit


@intrinsic
def seen_as(typing, rows, like):
    """The same array as rows of another width: that of ``like``."""

    def emit(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], arguments[1].type)

    return like(rows, like), emit


def _constant(value_of: Any, text: str) -> Any:
    """An intrinsic that is a number known from the type of its argument."""

    def typed(typing, rows):
        def emit(context, builder, signature, arguments):
            return ir.Constant(ir.IntType(64), value_of(signature.args[0].dtype.count))

        return types.intp(rows), emit

    typed.__doc__ = text
    return intrinsic(typed)


tile_rows = _constant(lambda d: tile_shape(d).product_rows, "Rows of a matrix product's tile.")
tile_columns = _constant(lambda d: tile_shape(d).columns, "Columns of a tile.")
outer_rows = _constant(lambda d: tile_shape(d).outer_rows, "Rows of a transposed product's tile.")


@intrinsic
def width(typing, rows):
    """D, the floats of a row; a constant in compiled code."""

    def emit(context, builder, signature, arguments):
        return ir.Constant(ir.IntType(64), signature.args[0].dtype.count)

    return types.intp(rows), emit


@intrinsic
def row_count(typing, value):
    """The lanes of a row; a constant in compiled code."""

    def emit(context, builder, signature, arguments):
        return ir.Constant(ir.IntType(64), signature.args[0].count)

    return types.intp(value), emit


@intrinsic
def row_like(typing, value, scalar):
    """A row as wide as ``value`` with ``scalar`` in every lane."""

    def emit(context, builder, signature, arguments):
        return _splat(builder, arguments[1], signature.args[0].count)

    return value(value, types.float32), emit


def _elementwise(name: str) -> Any:
    def typed(typing, a, b):
        def emit(context, builder, signature, arguments):
            return getattr(builder, name)(*arguments)

        return a(a, b), emit

    return intrinsic(typed)


add = _elementwise("fadd")
sub = _elementwise("fsub")
mul = _elementwise("fmul")
div = _elementwise("fdiv")


@intrinsic
def fma(typing, a, b, c):
    """The product of a and b, plus c."""

    def emit(context, builder, signature, arguments):
        return _fma(builder, *arguments)

    return a(a, b, c), emit


@intrinsic
def where_positive(typing, condition, value):
    """``value`` where ``condition`` is above zero, else 0: ReLU, and its gradient."""

    def emit(context, builder, signature, arguments):
        zero = ir.Constant(arguments[0].type, None)
        # Unordered: what is not a number goes through, as in torch, and is noticed.
        return builder.select(builder.fcmp_unordered(">", arguments[0], zero), arguments[1], zero)

    return value(condition, value), emit


@intrinsic
def total(typing, value):
    """The sum of all lanes."""

    def emit(context, builder, signature, arguments):
        count = signature.args[0].count
        start = ir.Constant(_FLOAT, 0.0)
        name = f"llvm.vector.reduce.fadd.v{count}f32"
        return _call(builder, name, _FLOAT, [start, arguments[0]], fastmath=("reassoc",))

    return types.float32(value), emit


@intrinsic
def kept(typing, value, mask, row, threshold, scale):
    """``value * scale`` where the row of random bytes reaches ``threshold``, else 0: dropout."""

    def emit(context, builder, signature, arguments):
        value_, mask_, row_, threshold_, scale_ = arguments
        count = signature.args[0].count
        byte = ir.IntType(8)
        size = ir.Constant(ir.IntType(64), count)
        pointer = builder.gep(mask_, [builder.mul(row_, size)])
        bytes_ = builder.load(builder.bitcast(pointer, ir.VectorType(byte, count).as_pointer()))
        bytes_.align = 1
        undefined = ir.Constant(ir.VectorType(byte, count), ir.Undefined)
        first = builder.insert_element(
            undefined, builder.trunc(threshold_, byte), ir.Constant(_INDEX, 0)
        )
        zeros = ir.Constant(ir.VectorType(_INDEX, count), [0] * count)
        least = builder.shuffle_vector(first, undefined, zeros)
        keep = builder.icmp_unsigned(">=", bytes_, least)
        scaled = builder.fmul(value_, _splat(builder, scale_, count))
        return builder.select(keep, scaled, ir.Constant(value_.type, None))

    return value(value, mask, types.intp, types.intp, types.float32), emit


# ---- tiles ---------------------------------------------------------------------------------------


def _filled(builder: Any, kind: Tile, value: Any) -> Any:
    result = ir.Constant(ir.ArrayType(_vector(kind.count), kind.rows), ir.Undefined)
    for m in range(kind.rows):
        result = builder.insert_value(result, value, m)
    return result


@intrinsic
def tile(typing, source, value):
    """A tile for the product of ``source`` with a matrix, each row equal to ``value``."""
    kind = Tile(tile_shape(source.dtype.count).product_rows, value.count)

    def emit(context, builder, signature, arguments):
        return _filled(builder, kind, arguments[1])

    return kind(source, value), emit


@intrinsic
def outer_tile(typing, source, value):
    """A tile for the transposed product of ``source`` with rows, each row equal to ``value``."""
    kind = Tile(tile_shape(source.dtype.count).outer_rows, value.count)

    def emit(context, builder, signature, arguments):
        return _filled(builder, kind, arguments[1])

    return kind(source, value), emit


@intrinsic(prefer_literal=True)
def tile_of_rows(typing, value, rows):
    """A tile of ``rows`` rows, each equal to ``value``."""
    kind = Tile(rows.literal_value, value.count)

    def emit(context, builder, signature, arguments):
        return _filled(builder, kind, arguments[0])

    return kind(value, rows), emit


def _tile_step(builder: Any, kind: Tile, acc: Any, scalar_at: Any, value: Any) -> Any:
    """acc[m] += the scalar at address ``scalar_at(m)`` * value, for every row m of a tile."""
    for m in range(kind.rows):
        splat = _splat(builder, builder.load(scalar_at(m)), kind.count)
        after = _fma(builder, splat, value, builder.extract_value(acc, m))
        acc = builder.insert_value(acc, after, m)
    return acc


@intrinsic
def tile_fma(typing, acc, source, row, column, value):
    """acc[m] += source[row + m, column] * value: one step of a matrix product."""

    def emit(context, builder, signature, arguments):
        acc_, source_, row_, column_, value_ = arguments

        def scalar_at(m):
            at_row = builder.add(row_, ir.Constant(row_.type, m))
            return _float_pointer(builder, source_, at_row, column_)

        return _tile_step(builder, signature.args[0], acc_, scalar_at, value_)

    return acc(acc, source, types.intp, types.intp, value), emit


@intrinsic
def tile_outer(typing, acc, source, row, column, value):
    """acc[m] += source[row, column + m] * value: one step of a transposed matrix product."""

    def emit(context, builder, signature, arguments):
        acc_, source_, row_, column_, value_ = arguments

        def scalar_at(m):
            at_column = builder.add(column_, ir.Constant(column_.type, m))
            return _float_pointer(builder, source_, row_, at_column)

        return _tile_step(builder, signature.args[0], acc_, scalar_at, value_)

    return acc(acc, source, types.intp, types.intp, value), emit


@intrinsic
def tile_at(typing, rows, row, column):
    """The tile that stands in an array at (row, column)."""
    shape = tile_shape(rows.dtype.count)
    kind = Tile(shape.product_rows, shape.columns)

    def emit(context, builder, signature, arguments):
        rows_, row_, column_ = arguments
        result = ir.Constant(ir.ArrayType(_vector(kind.count), kind.rows), ir.Undefined)
        for m in range(kind.rows):
            at_row = builder.add(row_, ir.Constant(row_.type, m))
            pointer = _float_pointer(builder, rows_, at_row, column_)
            result = builder.insert_value(result, _load(builder, pointer, kind.count), m)
        return result

    return kind(rows, types.intp, types.intp), emit


@intrinsic
def tile_store(typing, rows, row, column, acc):
    """Puts a tile into an array at (row, column)."""

    def emit(context, builder, signature, arguments):
        rows_, row_, column_, acc_ = arguments
        kind = signature.args[3]
        for m in range(kind.rows):
            at_row = builder.add(row_, ir.Constant(row_.type, m))
            pointer = _float_pointer(builder, rows_, at_row, column_)
            typed = builder.bitcast(pointer, _vector(kind.count).as_pointer())
            builder.store(builder.extract_value(acc_, m), typed).align = 4

    return types.void(rows, types.intp, types.intp, acc), emit


@intrinsic
def tile_add(typing, rows, row, column, acc):
    """Adds a tile to an array at (row, column)."""

    def emit(context, builder, signature, arguments):
        rows_, row_, column_, acc_ = arguments
        kind = signature.args[3]
        for m in range(kind.rows):
            at_row = builder.add(row_, ir.Constant(row_.type, m))
            pointer = _float_pointer(builder, rows_, at_row, column_)
            before = _load(builder, pointer, kind.count)
            typed = builder.bitcast(pointer, _vector(kind.count).as_pointer())
            after = builder.fadd(before, builder.extract_value(acc_, m))
            builder.store(after, typed).align = 4

    return types.void(rows, types.intp, types.intp, acc), emit


@intrinsic
def tile_relu(typing, acc):
    """Zero where the tile is negative."""

    def emit(context, builder, signature, arguments):
        acc_ = arguments[0]
        for m in range(signature.args[0].rows):
            row = builder.extract_value(acc_, m)
            zero = ir.Constant(row.type, None)
            relu = builder.select(builder.fcmp_unordered(">", row, zero), row, zero)
            acc_ = builder.insert_value(acc_, relu, m)
        return acc_

    return acc(acc), emit


@intrinsic
def tile_where_positive(typing, acc, rows, row, column):
    """Zero where the tile that stands in an array at (row, column) is not positive."""

    def emit(context, builder, signature, arguments):
        acc_, rows_, row_, column_ = arguments
        kind = signature.args[0]
        for m in range(kind.rows):
            at_row = builder.add(row_, ir.Constant(row_.type, m))
            pointer = _float_pointer(builder, rows_, at_row, column_)
            condition = _load(builder, pointer, kind.count)
            zero = ir.Constant(condition.type, None)
            positive = builder.fcmp_unordered(">", condition, zero)
            kept_ = builder.select(positive, builder.extract_value(acc_, m), zero)
            acc_ = builder.insert_value(acc_, kept_, m)
        return acc_

    return acc(acc, rows, types.intp, types.intp), emit
