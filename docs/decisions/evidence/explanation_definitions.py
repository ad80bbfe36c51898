"""Compares definitions of path evidence: python explanation_definitions.py RUN [PREDICTIONS].

Test facts are explained by each definition. Printed are means over predictions: log-odds lost
without the facts of five paths (or as many facts as they have), log-odds gained by these facts
alone over no facts at all, and the reciprocal rank that they alone give.
"""

import sys
from collections import defaultdict

import numpy as np

from knowformer.explanation.check.benchmark import choose_facts
from knowformer.explanation.check.faithfulness import RandomEvidence, Removal, score_margin
from knowformer.explanation.find.evidence import CANDIDATES, AnswerEvidence, EvidenceFinder
from knowformer.explanation.find.evidence_graph import EvidenceGraph
from knowformer.explanation.find.paths import USUAL_LENGTH, EdgePath, Floats, find_paths
from knowformer.reasoner import Reasoner

NUM_PATHS = 5


def facts_of(graph: EvidenceGraph, paths: list[EdgePath]) -> list[int]:
    """Returns the facts of the first paths, each once."""
    edges = [edge for path in paths[:NUM_PATHS] for edge in path.edges]
    return list(dict.fromkeys(graph.fact_of_edge[edges].tolist())) if edges else []


def definitions(
    finder: EvidenceFinder, evidence: AnswerEvidence, removal: Removal
) -> dict[str, list[int]]:
    """Returns the facts that each definition names."""
    graph, placed, distance = evidence.graph, evidence.placed, evidence.distance
    head, answer = placed.head, placed.answer
    integrated = evidence.trace.hops.double().numpy()
    # As NBFNet takes them: at the graph as it is.
    plain = finder.tracer.hop_gradients(evidence.prediction, graph)[1].double().numpy()

    def search(hops: Floats) -> list[EdgePath]:
        length = min(len(hops), max(USUAL_LENGTH, distance))
        weights = graph.per_fact(hops.sum(0))
        ends = {"head": head, "answer": answer}
        return find_paths(graph, hops, weights, **ends, count=CANDIDATES, max_length=length)

    chosen = search(integrated)
    alone = {
        path: removal.without_facts(graph.fact_of_edge[list(path.edges)].tolist()).log_odds
        for path in chosen
    }
    facts = facts_of(graph, chosen)
    random = np.random.default_rng([head, placed.relation, answer])
    return {
        "chosen: integrated gradients, mean of facts": facts,
        "integrated gradients, widest first": facts_of(
            graph, sorted(chosen, key=lambda path: -path.width)
        ),
        "gradients at the whole graph, mean of facts": facts_of(graph, search(plain)),
        "each path by its own removal": facts_of(graph, sorted(chosen, key=lambda p: alone[p])),
        "single facts by integrated gradient": np.argsort(-graph.per_fact(integrated.sum(0)))[
            : len(facts)
        ].tolist(),
        "random facts, as near": RandomEvidence.of_facts(graph, placed).draw(facts, random),
    }


def main(run: str, count: int = 60) -> None:
    """Explains test facts of a run by each definition."""
    reasoner = Reasoner.from_pretrained(run, threads=1)
    split, seed = reasoner.dataset.test, reasoner.config.seed
    finder = EvidenceFinder.on_split(reasoner.model, split, seed=seed)
    results: defaultdict[str, list[tuple[float, ...]]] = defaultdict(list)
    for fact in choose_facts(split.facts, len(split.graph.relations), count, seed=seed).tolist():
        prediction = finder.prediction(*fact)
        evidence = finder.find(prediction)
        before = score_margin(evidence.trace.scores, prediction)
        removal = Removal(finder, evidence)
        empty = removal.with_facts_alone([])
        for name, facts in definitions(finder, evidence, removal).items():
            without, alone = removal.without_facts(facts), removal.with_facts_alone(facts)
            lost, gained = before.log_odds - without.log_odds, alone.log_odds - empty.log_odds
            results[name].append((len(facts), lost, gained, 1 / alone.rank))
    print(f"{'definition':45s} facts   lost  gained  1/rank alone")
    for name, values in results.items():
        size, lost, gained, rank = np.mean(values, axis=0)
        print(f"{name:45s} {size:5.1f} {lost:6.2f} {gained:7.2f} {rank:13.3f}")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
