from knowformer.runs.folder import load_bundle
from knowformer.runs.shipped import SHIPPED_FOLDER
from knowformer_lab.zero_shot import measure


def test_the_shipped_model_is_measured_on_a_graph_that_it_has_not_seen() -> None:
    found = measure(load_bundle(SHIPPED_FOLDER), "nations", threads=1)
    assert found["num_facts"] == 201
    assert found["pessimistic"]["mrr"] <= found["realistic"]["mrr"]
    assert found["realistic"]["mrr"] > 0.564  # popularity's
    assert not found["shares_facts_with_training"]
