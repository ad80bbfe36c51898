"""Imported weights against the released model's computation, written down from its description.

Random weights and sizes; every relation's id, and the direction of every message, is theirs.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import layer_norm, linear, normalize

from bench import RING
from knowformer.data.loading import load_dataset
from knowformer.errors import BundleError
from knowformer.graph.knowledge_graph import KnowledgeGraph
from knowformer.kernels.interface import QueryView
from knowformer.model.noise import identity_noise
from knowformer.runs.folder import load_bundle
from knowformer_lab.released_weights import main, released_model

D, H, L, QUERY_HOPS, VALUE_HOPS = 8, 2, 2, 2, 3
State = dict[str, Tensor]


def random_state(num_relations: int) -> State:
    """The released model's parameters by its own names, unused ones too."""
    draw = torch.Generator().manual_seed(0)
    state: State = {}

    def add(name: str, *shape: int) -> None:
        state[name] = torch.randn(shape, generator=draw, dtype=torch.double) / D**0.5

    def add_linear(name: str, inputs: int, outputs: int) -> None:
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs)

    add("query_embedding.weight", num_relations, D)
    add("dummy_param", 1)
    add_linear("mlp_out.0", D, D)
    add_linear("mlp_out.2", D, 1)
    for layer in (f"layers.{number}" for number in range(L)):
        for name, inputs, outputs in (
            ("fc_qk_x.0", D + 1, D), ("fc_qk_x.2", D, D),
            ("fc_v_x.0", 2 * D, D), ("fc_v_x.2", D, D),
            ("fc_to_qk", D, 2 * D), ("fc_qk_z", D, num_relations * D), ("fc_to_v", D, D),
            ("fc_attn", 2 * D // H, D // H), ("ffn.fc1", D, D), ("ffn.fc2", D, D),
        ):  # fmt: skip
            add_linear(f"{layer}.{name}", inputs, outputs)
        for norm in ("norm", "attn_norm"):
            add(f"{layer}.{norm}.weight", D)
            add(f"{layer}.{norm}.bias", D)
        hops = [(f"{layer}.qk_layers.{n}", "mlp_out", "alpha") for n in range(QUERY_HOPS)]
        hops += [(f"{layer}.v_layers.{n}", "fc_out", "beta") for n in range(VALUE_HOPS)]
        for hop, update, self_weight in hops:
            add_linear(f"{hop}.{update}.0", D, D)
            add_linear(f"{hop}.{update}.2", D, D)
            add(f"{hop}.norm.weight", D)
            add(f"{hop}.norm.bias", D)
            add(f"{hop}.{self_weight}", 1, D)
            add(f"{hop}.eps", 1)
            if update == "fc_out":
                add_linear(f"{hop}.fc_z", D, num_relations * D)
                add_linear(f"{hop}.fc_pna", D, D)
    return state


def their_scores(
    state: State, edges: list[tuple[int, int, int]], head: int, relation: int, noise: Tensor
) -> Tensor:
    """One query, one edge at a time. A fact (h, r, t) adds the state of t, times r's, to h."""
    num_entities = noise.shape[1]

    def apply(name: str, x: Tensor) -> Tensor:
        return linear(x, state[f"{name}.weight"], state[f"{name}.bias"])

    def mlp(name: str, x: Tensor) -> Tensor:
        return apply(f"{name}.2", torch.relu(apply(f"{name}.0", x)))

    def norm(name: str, x: Tensor) -> Tensor:
        return layer_norm(x, (D,), state[f"{name}.weight"], state[f"{name}.bias"])

    def hop(name: str, update: str, self_weight: str, x: Tensor, vectors: Tensor) -> Tensor:
        sums = torch.zeros_like(x)
        for h, r, t in edges:
            sums[h] += vectors[r] * x[t]
        sums = sums + state[f"{name}.{self_weight}"] * x
        return x + norm(f"{name}.norm", mlp(f"{name}.{update}", sums))

    query = state["query_embedding.weight"][relation]
    x = torch.zeros(num_entities, D, dtype=torch.double)
    for number in range(L):
        layer = f"layers.{number}"
        shared = apply(f"{layer}.fc_qk_z", query).view(-1, D)
        context = mlp(f"{layer}.fc_qk_x", torch.cat([x, noise[number]], 1))
        for n in range(QUERY_HOPS):
            context = hop(f"{layer}.qk_layers.{n}", "mlp_out", "alpha", context, shared)
        mark = torch.zeros_like(x)
        mark[head] = 1
        values = mlp(f"{layer}.fc_v_x", torch.cat([x, mark], 1))
        for n in range(VALUE_HOPS):
            name = f"{layer}.v_layers.{n}"
            values = hop(name, "fc_out", "beta", values, apply(f"{name}.fc_z", query).view(-1, D))
        q, k = apply(f"{layer}.fc_to_qk", context).split(D, 1)
        x = norm(f"{layer}.attn_norm", x + attention(q, k, values))
        inner = torch.relu(apply(f"{layer}.ffn.fc1", x))
        x = norm(f"{layer}.norm", x + apply(f"{layer}.ffn.fc2", inner))
    return mlp("mlp_out", x)[:, 0]


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Every pair of entities: 1 + q.k, and as much again as there are entities for oneself."""
    heads: list[Tensor] = []
    for one_q, one_k, one_v in zip(*(each.split(D // H, 1) for each in (q, k, v)), strict=True):
        weights = 1 + normalize(one_q, dim=1) @ normalize(one_k, dim=1).T
        total = len(v) + weights.sum(1, keepdim=True)
        heads.append((len(v) * one_v + weights @ one_v) / total)
    return torch.cat(heads, 1)


def their_relations(graph: KnowledgeGraph) -> dict[str, int]:
    """Their numbering: last name first, each inverse after its relation."""
    names = list(reversed(graph.relations.names))
    forward = {name: 2 * number for number, name in enumerate(names)}
    return forward | {f"-{name}": number + 1 for name, number in forward.items()}


def test_imported_weights_score_as_the_released_model_does(
    random_graph: Callable[[], KnowledgeGraph],
) -> None:
    graph = random_graph()
    theirs, count = their_relations(graph), len(graph.relations)
    state = random_state(2 * count)
    model = released_model(
        {f"model.{name}": each for name, each in state.items()},
        theirs,
        graph.relations,
        num_heads=H,
        backend="reference",
    )
    config = model.config
    assert (config.layers, config.query_key_hops, config.value_hops) == (L, QUERY_HOPS, VALUE_HOPS)
    edges: list[tuple[int, int, int]] = []
    for fact in graph.facts.tolist():
        head, relation, tail = (int(each) for each in fact)
        name = graph.relations.names[relation]
        edges += [(head, theirs[name], tail), (tail, theirs[f"-{name}"], head)]
    noise = identity_noise(config, graph.entity_keys, seed=0).double()
    names: list[str] = [*graph.relations.names]
    names += [f"-{name}" for name in graph.relations.names]
    asked = torch.tensor([0, count])  # a relation and its inverse
    view = QueryView.whole(graph.adjacency.edges, torch.tensor([1, 2]))
    with torch.no_grad():
        ours = model(view, asked, identity_noise=noise).view(2, -1)
    for row, (head, relation) in enumerate(zip([1, 2], asked.tolist(), strict=True)):
        expected = their_scores(state, edges, head, theirs[names[relation]], noise)
        assert expected.std() > 1e-3  # else anything would do
        torch.testing.assert_close(ours[row], expected, rtol=1e-10, atol=1e-12)


def test_other_weights_and_other_relations_are_refused(
    random_graph: Callable[[], KnowledgeGraph],
) -> None:
    graph = random_graph()
    theirs = their_relations(graph)
    state = random_state(2 * len(graph.relations))

    def refused(state: State, theirs: dict[str, int]) -> str:
        with pytest.raises(BundleError) as caught:
            released_model(state, theirs, graph.relations, num_heads=H)
        return str(caught.value)

    assert "got one called 'other.weight'" in refused({"other.weight": torch.zeros(1)}, theirs)
    assert "no query_embedding" in refused({}, theirs)
    short = {name: each for name, each in state.items() if name != "mlp_out.2.bias"}
    assert "score_last.bias has shape None instead of (1,)" in refused(short, theirs)
    first = graph.relations.names[0]
    lacking = {name: number for name, number in theirs.items() if name != f"-{first}"}
    assert f"without '-{first}'" in refused(state, lacking)


def test_the_command_leaves_a_run_that_can_be_evaluated(
    experiments_folder: Path, tmp_path: Path
) -> None:
    del experiments_folder  # writes the graph, and goes to its folder
    relations = load_dataset(RING).relations
    names = [part for name in relations.names for part in (name, f"-{name}")]
    listed = "".join(f"{name}\t{number}\n" for number, name in enumerate(names))
    (tmp_path / "relations.txt").write_text(listed, "utf-8")
    state = {name: each.float() for name, each in random_state(len(names)).items()}
    save_file(state, tmp_path / "state.safetensors")
    arguments = ["state.safetensors", RING, "--relations", "relations.txt", "--heads", "2"]
    main([*arguments, "--out", "run"])
    bundle = load_bundle(tmp_path / "run")
    assert bundle.config.model.hidden_dim == D
    assert bundle.link == "softmax"
    torch.testing.assert_close(bundle.model.score_last.weight, state["mlp_out.2.weight"])
