"""Zero-shot answers: the shipped model on graphs whose relations it has never seen.

    python -m knowformer_lab.zero_shot --out lab/experiments/zero_shot.json

Ranks every test fact both ways and prints pessimistic MRR, as the printed figures are, beside them.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from knowformer.data.loading import load_dataset
from knowformer.evaluation.evaluate import rank_split
from knowformer.evaluation.metrics import rank_metrics
from knowformer.runs.folder import Bundle, load_bundle
from knowformer.runs.shipped import SHIPPED_FOLDER
from knowformer.scoring.scorer import Scorer
from knowformer.storage.atomic_files import write_text
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
SHARED = ("fb", "wn")  # begin the names of graphs that share facts with those trained on


def measure(bundle: Bundle, name: str, *, threads: int) -> dict[str, Any]:
    """Returns how well a model ranks the test facts of a data set that it was not trained on."""
    split, started = load_dataset(name).test, time.perf_counter()
    scorer = Scorer(bundle.model, split.graph, seed=bundle.config.seed, threads=threads)
    ranks, _, num_queries = rank_split(scorer, split)
    return {
        "realistic": rank_metrics(ranks.realistic),
        "pessimistic": rank_metrics(ranks.pessimistic),
        "num_facts": len(split.facts),
        "num_queries": num_queries,
        "num_entities": len(split.graph.entities),
        "shares_facts_with_training": name.startswith(SHARED),
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
    say = sys.stdout.write
    for group, published in GROUPS.items():
        say(f"{group}: pessimistic MRR, beside ULTRA's as printed\n")
        for name, theirs in published.items():
            found[name] = measure(bundle, name, threads=arguments.threads) | {"ultra_3g": theirs}
            mrr = found[name]["pessimistic"]["mrr"]
            shares = "  shares facts with training" * found[name]["shares_facts_with_training"]
            say(f"{name:14} {mrr:.3f}  {theirs:.3f}{shares}\n")
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
