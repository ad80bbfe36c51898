"""Compiles the kernels that tests use: ``python -m tests.contracts.compile_kernels``.

``./check`` does so before the tests: two of their workers would compile the same ones at once.
"""

from knowformer.kernels._arguments import TABLE, arguments_of
from knowformer.kernels._cpu_compile import WIDTHS, compiled_kernel

NUM_HEADS = (4, 1)  # of the operations with attention


def main() -> None:
    """Fills Numba's cache; what is in it already takes no time."""
    for name in TABLE:
        has_heads = any(argument.kind == "heads" for argument in arguments_of(name))
        for width in WIDTHS:
            for num_heads in NUM_HEADS if has_heads else NUM_HEADS[:1]:
                compiled_kernel(name, width, width // num_heads)


if __name__ == "__main__":
    main()
