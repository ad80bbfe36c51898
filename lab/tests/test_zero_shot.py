from knowformer.data.loading import load_dataset
from knowformer.runs.folder import load_bundle
from knowformer.runs.shipped import SHIPPED_FOLDER
from knowformer_lab.zero_shot import measure


def test_the_shipped_model_is_measured_on_a_graph_that_it_has_not_seen() -> None:
    found = measure(load_bundle(SHIPPED_FOLDER), "nations", trained=set(), threads=1)
    assert found["num_facts"] == 201
    assert found["pessimistic"]["mrr"] <= found["realistic"]["mrr"]
    assert found["realistic"]["mrr"] > 0.564  # popularity's
    assert not found["shares_facts_with_training"]


def test_facts_that_were_trained_on_are_counted() -> None:
    graph = load_dataset("nations").train.graph
    head, relation, tail = graph.facts[0].tolist()
    entity = graph.entities.name
    fact = entity(head), graph.relations.name(relation), entity(tail)
    found = measure(load_bundle(SHIPPED_FOLDER), "nations", trained={fact}, threads=1)
    assert 0 < found["share_of_facts_trained_on"] < 0.001
