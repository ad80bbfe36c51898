"""One root seed; everything random is derived from it by name.

Nothing here keeps state: a generator for step 1000 is made from (root seed, name, 1000), so a
resumed run needs no stored random state and ends with the same bits.
"""

from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import torch

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def derive_seed(root: int, *names: str | int) -> int:
    """Returns a 63-bit seed for the stream called ``names`` under the root seed."""
    label = "/".join([str(root), *map(str, names)])
    return int.from_bytes(blake2b(label.encode(), digest_size=8).digest()) >> 1


def generator(root: int, *names: str | int) -> torch.Generator:
    """Returns a fresh torch generator for the stream called ``names``."""
    return torch.Generator().manual_seed(derive_seed(root, *names))


def name_keys(names: list[str]) -> npt.NDArray[np.uint64]:
    """Returns a stable 64-bit key per name: noise belongs to a name, not to its row number."""
    digests = b"".join(blake2b(name.encode(), digest_size=8).digest() for name in names)
    return np.frombuffer(digests, dtype=np.uint64).copy()


def _mixed(counters: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's finaliser: a bijection on 64-bit integers that scatters every bit."""
    z = counters.copy()
    z ^= z >> np.uint64(30)
    z *= _MIX_1
    z ^= z >> np.uint64(27)
    z *= _MIX_2
    z ^= z >> np.uint64(31)
    return z


def counter_normal(seed: int, keys: npt.NDArray[np.uint64], width: int) -> npt.NDArray[np.float32]:
    """Returns standard normal numbers (len(keys), width), a function of (seed, key, column) only.

    Counter-based: a row does not depend on which other rows are asked for, nor on their order.
    """
    with np.errstate(over="ignore"):
        rows = _mixed(keys + np.uint64(seed) * _GOLDEN)
        columns = np.arange(1, 2 * width + 1, dtype=np.uint64) * _GOLDEN
        bits = _mixed(rows[:, None] + columns[None, :])
    # 53 random bits each; the first half is kept off zero for the logarithm (Box-Muller).
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius = np.sqrt(-2.0 * np.log(uniform[:, :width]))
    return (radius * np.cos(2.0 * np.pi * uniform[:, width:])).astype(np.float32)
