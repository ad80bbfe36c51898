"""Weights of the authors' released code, as a run of this project.

    python -m knowformer_lab.released_weights STATE.safetensors wn18rr --relations relations.txt \
        --heads 4 --out runs/released

STATE holds the released model's ``state_dict`` as safetensors: their checkpoints are pickles, which
nothing here opens; whoever trusts one converts it. ``relations.txt`` is their list of relations, a
name and an id a line, the inverse of NAME being called -NAME.

Two things differ besides names. Relations are numbered otherwise, each inverse next to its
relation. And a fact r(h, t) sends its message from t to h there and from h to t here (decision
0002): as the inverse fact is in the graph as well, what the released code multiplies by the vector
of r is here multiplied by that of r's inverse. So the projections that make these vectors have
their relation axis swapped with the inverse; the table of query relations, which says what is
asked, keeps its order.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from knowformer.data.loading import load_dataset
from knowformer.errors import BundleError
from knowformer.graph.inverse import inverse_of, num_with_inverses
from knowformer.graph.vocabulary import Vocabulary
from knowformer.model.config import PRESETS, ModelConfig
from knowformer.model.knowformer import KnowFormer
from knowformer.runs.folder import save_weights, start_run
from knowformer.storage.tensor_files import read_tensors
from knowformer.training.settings_file import build_config

# Their parameters that score nothing.
UNUSED = re.compile(r"dummy_param|\.eps$|\.fc_(pna|readout_i|readout_o|attn|attn_value|to_v)\.")

# Their names, and ours.
NAMES = {
    r"query_embedding": "encoder.query_relations",
    r"mlp_out\.0": "score_hidden",
    r"mlp_out\.2": "score_last",
    r"layers\.(\d+)\.fc_qk_z": r"encoder.layers.\1.query_key",
    r"layers\.(\d+)\.v_layers\.(\d+)\.fc_z": r"encoder.layers.\1.value.\2",
    r"layers\.(\d+)\.fc_qk_x\.0": r"layers.\1.query_key_stream.first",
    r"layers\.(\d+)\.fc_qk_x\.2": r"layers.\1.query_key_stream.second",
    r"layers\.(\d+)\.fc_v_x\.0": r"layers.\1.value_stream.first",
    r"layers\.(\d+)\.fc_v_x\.2": r"layers.\1.value_stream.second",
    r"layers\.(\d+)\.qk_layers\.(\d+)\.mlp_out\.0": r"layers.\1.query_key_stream.hops.\2.update.0",
    r"layers\.(\d+)\.qk_layers\.(\d+)\.mlp_out\.2": r"layers.\1.query_key_stream.hops.\2.update.1",
    r"layers\.(\d+)\.qk_layers\.(\d+)\.norm": r"layers.\1.query_key_stream.hops.\2.norm",
    r"layers\.(\d+)\.v_layers\.(\d+)\.fc_out\.0": r"layers.\1.value_stream.hops.\2.update.0",
    r"layers\.(\d+)\.v_layers\.(\d+)\.fc_out\.2": r"layers.\1.value_stream.hops.\2.update.1",
    r"layers\.(\d+)\.v_layers\.(\d+)\.norm": r"layers.\1.value_stream.hops.\2.norm",
    r"layers\.(\d+)\.fc_to_qk": r"layers.\1.to_query_key",
    r"layers\.(\d+)\.attn_norm": r"layers.\1.attention_norm",
    r"layers\.(\d+)\.ffn\.fc1": r"layers.\1.expand",
    r"layers\.(\d+)\.ffn\.fc2": r"layers.\1.contract",
    r"layers\.(\d+)\.norm": r"layers.\1.output_norm",
}
SELF_WEIGHTS = {
    r"layers\.(\d+)\.qk_layers\.(\d+)\.alpha": r"layers.\1.query_key_stream.hops.\2.self_weight",
    r"layers\.(\d+)\.v_layers\.(\d+)\.beta": r"layers.\1.value_stream.hops.\2.self_weight",
}


def released_model(
    state: Mapping[str, Tensor],
    theirs: Mapping[str, int],
    relations: Vocabulary,
    *,
    num_heads: int,
    backend: str = "auto",
) -> KnowFormer:
    """Returns a model that scores as the released one does under the same noise.

    Args:
        state: the released model's ``state_dict``.
        theirs: the id of each relation there, the inverse of NAME being -NAME.
        relations: the relations of the graph here; the same names.
        num_heads: attention heads, which no weight tells.
        backend: the kernels' name.

    Raises:
        BundleError: weights or relations are not those of such a model.
    """
    order = _their_relations(theirs, relations)
    weights: dict[str, Tensor] = {}
    for given, tensor in state.items():
        name = given.removeprefix("model.")  # as their checkpoints have it
        if not UNUSED.search(name):
            ours = _our_name(name)
            weights[ours] = _our_tensor(ours, tensor, order, relations)
    config = _config(weights, num_heads)
    model = KnowFormer(config, num_with_inverses(len(relations)), backend=backend)
    wanted = {name: tuple(each.shape) for name, each in model.state_dict().items()}
    found = {name: tuple(each.shape) for name, each in weights.items()}
    if found != wanted:
        odd = sorted(name for name in found | wanted if found.get(name) != wanted.get(name))
        raise BundleError(
            f"Expected the weights of a released model, got others: {odd[0]} has shape "
            f"{found.get(odd[0])} instead of {wanted.get(odd[0])}."
        )
    model = model.to(next(iter(weights.values())).dtype)
    model.load_state_dict(weights)
    return model


def read_their_relations(path: Path) -> dict[str, int]:
    """Reads their relations.txt: a name and an id a line."""
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines() if line.strip()]
    if not all(len(row) == 2 and row[1].isdecimal() for row in rows):
        raise BundleError(f"Expected a relation's name, a tab and its id a line in {path}.")
    return {name: int(number) for name, number in rows}


def _their_relations(theirs: Mapping[str, int], relations: Vocabulary) -> Int[Tensor, " R"]:
    """Returns for each relation id of ours theirs, inverses after the relations."""
    wanted = [*relations.names, *(f"-{name}" for name in relations.names)]
    missing = [name for name in wanted if name not in theirs]
    if missing or sorted(theirs.values()) != list(range(len(wanted))):
        raise BundleError(
            f"Expected {len(wanted)} relations, each once and with its inverse, got {len(theirs)}"
            f"{f', without {missing[0]!r}' if missing else ''}."
        )
    return torch.tensor([theirs[name] for name in wanted])


def _our_name(name: str) -> str:
    for pattern, ours in SELF_WEIGHTS.items():
        if match := re.fullmatch(pattern, name):
            return match.expand(ours)
    stem, _, last = name.rpartition(".")
    for pattern, ours in NAMES.items():
        if match := re.fullmatch(pattern, stem):
            return f"{match.expand(ours)}.{last}"
    raise BundleError(f"Expected the weights of a released model, got one called {name!r}.")


def _our_tensor(
    name: str, tensor: Tensor, order: Int[Tensor, " R"], relations: Vocabulary
) -> Tensor:
    if name == "encoder.query_relations.weight":
        return tensor[order]
    if name.startswith("encoder.layers."):
        inverses = inverse_of(torch.arange(len(order)), len(relations))
        return tensor.unflatten(0, (len(order), -1))[order[inverses]].flatten(0, 1)
    return tensor.flatten() if name.endswith("self_weight") else tensor


def _config(weights: Mapping[str, Tensor], num_heads: int) -> ModelConfig:
    """Reads the sizes off the weights; everything else is the preset's."""
    counts = {
        "num_layers": r"layers\.(\d+)\.expand\.weight",
        "num_query_key_hops": r"layers\.0\.query_key_stream\.hops\.(\d+)\.self_weight",
        "num_value_hops": r"layers\.0\.value_stream\.hops\.(\d+)\.self_weight",
    }
    sizes = {
        key: sum(re.fullmatch(pattern, name) is not None for name in weights)
        for key, pattern in counts.items()
    }
    if "encoder.query_relations.weight" not in weights:
        raise BundleError("Expected the weights of a released model, got no query_embedding.")
    width = weights["encoder.query_relations.weight"].shape[1]
    settings = {**PRESETS["released"], **sizes, "hidden_dim": width, "num_heads": num_heads}
    return ModelConfig.model_validate(settings)


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes a run folder, which ``knowformer evaluate`` and the other commands take."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("state", type=Path)
    parser.add_argument("graph")
    parser.add_argument("--relations", type=Path, required=True)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    dataset = load_dataset(given.graph)
    model = released_model(
        read_tensors(given.state)[0],
        read_their_relations(given.relations),
        dataset.relations,
        num_heads=given.heads,
    )
    config = build_config(preset="released", dataset=given.graph)
    config = config.model_copy(update={"model": model.config})
    start_run(given.out, config, dataset)
    save_weights(given.out, model, link=config.training.link)


if __name__ == "__main__":
    main()
