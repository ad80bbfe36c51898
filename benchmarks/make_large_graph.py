"""A graph of any size with something to learn: types, relations, rules, a power law of degrees.

    python benchmarks/make_large_graph.py 1000000 10000000 facts.tsv    # entities, facts, file

Entities are of ``NUM_TYPES`` types. Each type has, towards other types,

- relations with one tail per head, which a power law chooses: few tails are very popular;
- relations that are the composition of two of those: ``r3(x, z)`` where ``r1(x, y)``, ``r2(y, z)``;
- one relation with many tails, its degrees by a power law, within a neighbourhood.

A twentieth of the facts of the first two kinds is left out, so that there is something to predict.
Rows are written by head, in the order of heads; the same arguments give the same bytes.
"""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

NUM_TYPES = 12
NUM_BASE = 3  # relations with one tail, of each type
NUM_RULES = 2  # compositions, of each type
KEPT = 0.95  # of the facts of both
SKEW = 0.6  # popularity of the n-th tail is n to the power of -SKEW
MOST_TAILS = 1000  # of one head, by the relation with many
NEIGHBOURHOOD = 1000  # entities
HEADS_AT_ONCE = 50_000

SYLLABLES = (
    "ka lo mi ren sta vo du pel tar xi ona bru fe gho ji qua wen yl zor eth".split()  # noqa: SIM905
)


class LargeGraph:
    """What every head has, as functions of its number."""

    def __init__(self, num_entities: int, num_facts: int, seed: int) -> None:
        self.num_entities = num_entities
        self.seed = seed
        draw = np.random.default_rng([seed, 0])
        self.towards = draw.integers(NUM_TYPES, size=(NUM_BASE, NUM_TYPES))
        self.tails = np.stack([self._popular(self.towards[n], draw) for n in range(NUM_BASE)])
        # A rule of a type: one of its relations, then one of the relations of where that leads.
        self.first = draw.integers(NUM_BASE, size=(NUM_RULES, NUM_TYPES))
        self.second = draw.integers(NUM_BASE, size=(NUM_RULES, NUM_TYPES))
        by_rule = KEPT * (NUM_BASE + NUM_RULES)
        self.many = max(0.0, num_facts / num_entities - by_rule)

    def _popular(self, towards: Ids, draw: np.random.Generator) -> Ids:
        """Returns a tail for every entity: of the type that its own type's relation leads to."""
        of_type = self.num_entities // NUM_TYPES
        # The inverse of the power law's distribution function.
        rank = (of_type * draw.random(self.num_entities) ** (1 / (1 - SKEW))).astype(np.int64)
        return rank * NUM_TYPES + towards[np.arange(self.num_entities) % NUM_TYPES]

    def facts(self, first: int, last: int) -> tuple[Ids, Ids, Ids]:
        """Returns heads, relations and tails of a run of entities, by head."""
        draw = np.random.default_rng([self.seed, 1, first])
        heads = np.arange(first, last)
        types = heads % NUM_TYPES
        columns = [(heads, n * NUM_TYPES + types, self.tails[n, heads]) for n in range(NUM_BASE)]
        for n in range(NUM_RULES):
            middle = self.tails[self.first[n, types], heads]
            tail = self.tails[self.second[n, types], middle]
            columns.append((heads, (NUM_BASE + n) * NUM_TYPES + types, tail))
        joined = [np.concatenate(parts) for parts in zip(*columns, strict=True)]
        kept = draw.random(len(joined[0])) < KEPT
        near = self._near(heads, draw)
        h, r, t = (
            np.concatenate([column[kept], more]) for column, more in zip(joined, near, strict=True)
        )
        order = np.argsort(h, kind="stable")
        return h[order], r[order], t[order]

    def _near(self, heads: Ids, draw: np.random.Generator) -> tuple[Ids, Ids, Ids]:
        """Returns facts of the relation with many tails; most are close to their head."""
        wanted = np.minimum(draw.pareto(1.5, len(heads)) * self.many / 2, MOST_TAILS)
        number = np.floor(wanted + draw.random(len(heads))).astype(np.int64)
        sender = np.repeat(heads, number)
        reach = min(NEIGHBOURHOOD, self.num_entities)
        step = (reach * draw.random(len(sender)) ** 3).astype(np.int64) + 1
        tail = (sender + step) % self.num_entities
        relation = (NUM_BASE + NUM_RULES) * NUM_TYPES + sender % NUM_TYPES
        return sender, relation, tail


def names_of(num_entities: int) -> list[str]:
    """Returns distinct names of several words, such as people and places have."""
    number = np.arange(num_entities)
    mixed = (number * 2654435761) % 2**32
    words = [f"{a}{b}{c}" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES]
    one, two = mixed % len(words), (mixed // len(words)) % len(words)
    return [
        f"{words[a]} {words[b]} {n}"
        for a, b, n in zip(one.tolist(), two.tolist(), number.tolist(), strict=True)
    ]


def relation_names() -> list[str]:
    """Returns a name for every kind of relation of every type."""
    kinds = [f"has{n}" for n in range(NUM_BASE)] + [f"rule{n}" for n in range(NUM_RULES)] + ["near"]
    return [f"{kind}_of_type{n}" for kind in kinds for n in range(NUM_TYPES)]


def write_graph(path: Path, num_entities: int, num_facts: int, *, seed: int = 0) -> int:
    """Writes about so many facts as TSV, some heads at a time; returns how many there are."""
    graph = LargeGraph(num_entities, num_facts, seed)
    entities, relations = names_of(num_entities), relation_names()
    written = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for first in range(0, num_entities, HEADS_AT_ONCE):
            last = min(first + HEADS_AT_ONCE, num_entities)
            columns = [ids.tolist() for ids in graph.facts(first, last)]
            file.writelines(
                f"{entities[h]}\t{relations[r]}\t{entities[t]}\n"
                for h, r, t in zip(*columns, strict=True)
            )
            written += len(columns[0])
    return written


def main() -> None:
    """Writes the graph that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entities", type=int)
    parser.add_argument("facts", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    written = write_graph(given.file, given.entities, given.facts, seed=given.seed)
    print(f"{written:,} facts of {given.entities:,} entities in {given.file}")


if __name__ == "__main__":
    main()
