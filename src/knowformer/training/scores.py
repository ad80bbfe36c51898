"""score_queries: scores with gradients, for a training loop of one's own."""

from numpy.random import SFC64, Generator

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import QueryView
from knowformer.model.knowformer import KnowFormer
from knowformer.model.noise import identity_noise, inference_draw
from knowformer.queries.query import QueryBatch
from knowformer.queries.scores import Scores
from knowformer.seeding import derive_seed
from knowformer.training.sampling.edge_removal import HiddenEdges, visible_edges
from knowformer.views.extractor import extractor_of
from knowformer.views.queries import HiddenTargets


def score_queries(
    model: KnowFormer,
    graph: KnowledgeGraph,
    batch: QueryBatch,
    *,
    hide: HiddenEdges | None = None,
    seed: int = 0,
    step: int | None = None,
) -> Scores:
    """Scores every entity that each query sees, all queries at once, as training does.

    ``loss.backward()`` through the scores reaches the model's parameters.

    Args:
        model: the model.
        graph: what the queries ask about; its relations are the model's.
        batch: the queries and their answers.
        hide: ``facts`` hides the batch's own facts, so that no query sees its answer; ``links``
            hides every edge between their heads and tails. None hides nothing, not even answers.
        seed: of noise and dropout.
        step: of training, which draws noise and dropout for itself. None: the noise of inference
            and no dropout, so that without ``hide`` the scores are those of ``Reasoner.score``.
    """
    config, keys, entities = model.config, graph.entity_keys, None
    settings = config.view_of(len(graph.entities))
    if settings is None:
        edges = graph.adjacency.edges
        if hide is not None:
            edges = visible_edges(graph.adjacency, batch, hide=hide)
        view = QueryView.whole(edges, batch.heads)
    else:
        hidden = None if hide is None else HiddenTargets(batch.rows, batch.tails, hide)
        extractor = extractor_of(graph.adjacency, keys, settings)
        views = extractor.extract(batch.heads, batch.relations, hidden=hidden)
        view, entities = views.view, views.entities
        keys = keys[entities.numpy()]
    draw = inference_draw() if step is None else step
    values = model(
        view,
        batch.relations,
        identity_noise=identity_noise(config, keys, seed=seed, draw=draw),
        relation_graph=model.relation_graph(graph.adjacency),
        dropout=None if step is None else Generator(SFC64(derive_seed(seed, "dropout", step, 0))),
    )
    return Scores(values, view.offsets, len(graph.entities), entities)
