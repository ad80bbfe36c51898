"""Train a model by a loop of one's own: plain torch around ``score_queries``."""

import torch
from torch.nn.functional import cross_entropy

import knowformer
from knowformer import KnowFormer, ModelConfig, TrainingBatches, score_queries

torch.set_num_threads(1)  # tiny graphs gain nothing from more

dataset = knowformer.load_dataset("nations")
graph = dataset.train.graph
config = ModelConfig(hidden_dim=16, num_layers=1, num_query_key_hops=1, num_value_hops=2)
model = KnowFormer.initialized(config, graph.relations, seed=0)
batches = TrainingBatches(
    dataset.train.facts, num_relations=len(graph.relations), batch_size=32, targets="one"
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
order = torch.Generator().manual_seed(0)
step = 0
for epoch in range(2):
    for batch in batches.epoch(order):
        # What a query asks for is hidden from it; each step draws its own noise and dropout.
        scores = score_queries(model, graph, batch, hide="facts", step=step)
        loss = cross_entropy(scores.table, batch.tails)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
    print(f"epoch {epoch + 1}: loss of the last batch {loss.item():.3f}")

report = knowformer.evaluate(model, dataset, "test", threads=1)
popularity = report.baselines["popularity"].realistic["mrr"]
print(f"test MRR {report.mrr:.3f}, popularity {popularity:.3f}")
