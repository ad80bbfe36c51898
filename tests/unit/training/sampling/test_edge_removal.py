import pytest
import torch

from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import Edges
from knowformer.queries.query import QueryBatch
from knowformer.training.sampling.edge_removal import HiddenEdges, visible_edges


def named_edges(graph: KnowledgeGraph, edges: Edges) -> set[tuple[str, str, str]]:
    """Sender, relation and receiver of every edge, inverse relations with a dash before."""
    names, relations = graph.entities.names, graph.relations.names
    all_relations = [*relations, *(f"-{name}" for name in relations)]
    receivers = torch.repeat_interleave(torch.arange(edges.num_entities), edges.offsets.diff())
    return {
        (
            names[edges.message_sender[message]],
            all_relations[edges.message_relation[message]],
            names[receiver],
        )
        for message, receiver in zip(edges.message.tolist(), receivers.tolist(), strict=True)
    }


def asked(graph: KnowledgeGraph, head: str, relation: str, tail: str) -> QueryBatch:
    backwards = relation.startswith("-")
    return QueryBatch(
        heads=torch.tensor([graph.entities.id(head)]),
        relations=torch.tensor(
            [graph.relations.id(relation.lstrip("-")) + len(graph.relations) * backwards]
        ),
        rows=torch.tensor([0]),
        tails=torch.tensor([graph.entities.id(tail)]),
    )


@pytest.mark.parametrize(
    "question", [("bob", "brother_of", "cid"), ("cid", "-brother_of", "bob")], ids=["tail", "head"]
)
def test_a_fact_is_hidden_in_both_directions_whichever_way_it_is_asked(
    family: KnowledgeGraph, question: tuple[str, str, str]
) -> None:
    everything = named_edges(family, family.adjacency.edges)
    visible = visible_edges(family.adjacency, asked(family, *question), hide="facts")
    hidden = everything - named_edges(family, visible)
    assert hidden == {("bob", "brother_of", "cid"), ("cid", "-brother_of", "bob")}


def test_hiding_links_hides_every_edge_between_the_two(family: KnowledgeGraph) -> None:
    everything = named_edges(family, family.adjacency.edges)
    batch = asked(family, "bob", "brother_of", "cid")
    hidden = everything - named_edges(family, visible_edges(family.adjacency, batch, hide="links"))
    assert hidden == {edge for edge in everything if {edge[0], edge[2]} == {"bob", "cid"}}
    assert len(hidden) == 4


@pytest.mark.parametrize("hide", ["facts", "links"])
def test_hiding_leaves_the_graph_itself_whole(family: KnowledgeGraph, hide: HiddenEdges) -> None:
    before = named_edges(family, family.adjacency.edges)
    visible_edges(family.adjacency, asked(family, "ann", "mother_of", "bob"), hide=hide)
    assert named_edges(family, family.adjacency.edges) == before
    assert len(before) == 2 * len(family.facts)
