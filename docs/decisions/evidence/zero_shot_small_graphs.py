"""How good is a pretrained model on small graphs that it has not seen? For choosing its settings.

python docs/decisions/evidence/zero_shot_small_graphs.py [--views 500 1000] RUN...

Twenty graphs of up to 3,000 entities are carved out of the training facts of five development
graphs, which are in no benchmark: 15 to 30 % of their facts are asked, 150 of them at most. Prints
pessimistic MRR.
"""

import argparse
from pathlib import Path
from statistics import fmean
from unittest.mock import patch

import torch

from knowformer.data.dataset import Split
from knowformer.data.loading import load_dataset
from knowformer.evaluation.evaluate import rank_split
from knowformer.evaluation.metrics import rank_metrics
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.knowformer import KnowFormer
from knowformer.runs.folder import load_bundle
from knowformer.scoring.scorer import Scorer
from knowformer.training.sampling import carving

NAMES = ["kg20c", "ddb14", "inferwiki16k", "wiki27k", "wd50k"]
GRAPHS_OF_EACH = 4
MOST_ASKED = 150
SEED = 7


def small_graphs(name: str) -> list[Split]:
    """Carves graphs out of a data set; relations have numbers for names."""
    split = load_dataset(name).train
    draw = torch.Generator().manual_seed(SEED)
    found: list[Split] = []
    with patch.object(carving, "ASKED", (0.15, 0.3)), patch.object(carving, "SMALLEST", 600):
        carver = carving.Carver(split.graph.adjacency, split.facts, size=3000)
        for _ in range(GRAPHS_OF_EACH):
            carved = carver.carve(draw)
            assert carved is not None
            graph = KnowledgeGraph(
                Vocabulary(map(str, carved.entities.tolist()), kind="entity"),
                Vocabulary(map(str, carved.relations.tolist()), kind="relation"),
                carved.visible,
            )
            order = torch.randperm(len(carved.asked), generator=draw)[:MOST_ASKED]
            known = torch.cat([carved.visible, carved.asked])
            found.append(Split("test", graph, carved.asked[order], known))
    return found


def mean_mrr(model: KnowFormer, graphs: list[Split]) -> float:
    """Returns the mean pessimistic MRR over graphs."""
    return fmean(
        rank_metrics(rank_split(Scorer(model, of.graph, seed=0, threads=1), of)[0].pessimistic)[
            "mrr"
        ]
        for of in graphs
    )


parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
parser.add_argument("runs", nargs="+", type=Path)
parser.add_argument("--views", nargs="+", type=int, help="entities of a view, if not the run's")
arguments = parser.parse_args()
graphs = {name: small_graphs(name) for name in NAMES}
for run in arguments.runs:
    bundle = load_bundle(run)
    own = bundle.config.model.view_size
    for size in arguments.views or [own]:
        config = bundle.config.model.model_copy(update={"view_size": size})
        model = KnowFormer(config, 0, backend=bundle.config.backend)
        model.load_state_dict(bundle.model.state_dict())
        found = {name: mean_mrr(model.eval(), some) for name, some in graphs.items()}
        each = ", ".join(f"{name} {mrr:.3f}" for name, mrr in found.items())
        print(f"{run}, view {size}: {fmean(found.values()):.4f} ({each})", flush=True)
