"""Zero-shot answers: the shipped model on graphs whose relations it has never seen.

    python -m knowformer_lab.zero_shot --out lab/experiments/zero_shot.json

Ranks every test fact both ways and prints pessimistic MRR, as the printed figures are, beside them.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from knowformer.data.dataset import Split
from knowformer.data.loading import load_dataset
from knowformer.evaluation.evaluate import rank_split
from knowformer.evaluation.metrics import rank_metrics
from knowformer.runs.folder import Bundle, load_bundle
from knowformer.runs.shipped import SHIPPED_FOLDER
from knowformer.scoring.scorer import Scorer
from knowformer.storage.atomic_files import write_text
from knowformer.storage.triples_io import NamedTriple
from knowformer.system.environment import describe_environment

# Zero-shot MRR of ULTRA trained on three graphs, as printed (Galkin et al., ICLR 2024).
FULLY_INDUCTIVE = {
    "nl-0": 0.342, "nl-25": 0.395, "nl-50": 0.407, "nl-75": 0.368, "nl-100": 0.471,
    "wk-25": 0.316, "wk-50": 0.166, "wk-75": 0.365, "wk-100": 0.164, "fb-100": 0.449,
}  # fmt: skip
INDUCTIVE = {
    "fb15k-237_v1": 0.498, "fb15k-237_v2": 0.512, "fb15k-237_v3": 0.491, "fb15k-237_v4": 0.486,
    "wn18rr_v1": 0.648, "wn18rr_v2": 0.663, "wn18rr_v3": 0.376, "wn18rr_v4": 0.611,
    "nell-995_v1": 0.785, "nell-995_v2": 0.526, "nell-995_v3": 0.515, "nell-995_v4": 0.479,
}  # fmt: skip
GROUPS = {"fully inductive": FULLY_INDUCTIVE, "inductive": INDUCTIVE}


def trained_facts(bundle: Bundle) -> set[NamedTriple]:
    """Returns the facts that a model was pretrained on."""
    names = bundle.dataset.name.split(" + ")
    return {fact for name in names for fact in _named(load_dataset(name).train)}


def _named(split: Split) -> Iterator[NamedTriple]:
    entity, relation = split.graph.entities.name, split.graph.relations.name
    return ((entity(h), relation(r), entity(t)) for h, r, t in split.known.tolist())


def measure(
    bundle: Bundle, name: str, *, trained: set[NamedTriple], threads: int
) -> dict[str, Any]:
    """Returns how well a model ranks the test facts of a data set that it was not trained on.

    Args:
        bundle: the model.
        name: the data set.
        trained: the facts that the model was trained on, which the data set may have in part.
        threads: CPU threads, 0 for all cores.
    """
    split, started = load_dataset(name).test, time.perf_counter()
    shared = sum(fact in trained for fact in _named(split)) / len(split.known)
    scorer = Scorer(bundle.model, split.graph, seed=bundle.config.seed, threads=threads)
    ranks, _, num_queries = rank_split(scorer, split)
    return {
        "realistic": rank_metrics(ranks.realistic),
        "pessimistic": rank_metrics(ranks.pessimistic),
        "num_facts": len(split.facts),
        "num_queries": num_queries,
        "num_entities": len(split.graph.entities),
        "share_of_facts_trained_on": round(shared, 4),
        "shares_facts_with_training": shared > 0,
        "seconds": round(time.perf_counter() - started, 1),
    }


def main() -> None:
    """Measures every data set, prints a table and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--run", type=Path, default=SHIPPED_FOLDER)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()
    bundle, found = load_bundle(arguments.run), dict[str, Any]()
    trained = trained_facts(bundle)
    say = sys.stdout.write
    for group, published in GROUPS.items():
        say(f"{group}: pessimistic MRR, beside ULTRA's as printed\n")
        for name, theirs in published.items():
            of = measure(bundle, name, trained=trained, threads=arguments.threads)
            found[name] = of | {"ultra_3g": theirs}
            shared = of["share_of_facts_trained_on"]
            shares = f"  {shared:.1%} of its facts were trained on" if shared else ""
            say(f"{name:14} {of['pessimistic']['mrr']:.3f}  {theirs:.3f}{shares}\n")
            sys.stdout.flush()
        ours = sum(found[name]["pessimistic"]["mrr"] for name in published) / len(published)
        say(f"{'mean':14} {ours:.3f}  {sum(published.values()) / len(published):.3f}\n\n")
    if arguments.out is not None:
        content = {
            "command": "python -m knowformer_lab.zero_shot",
            "trained_on": bundle.dataset.name,
            "environment": describe_environment(),
            "datasets": found,
        }
        write_text(arguments.out, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
