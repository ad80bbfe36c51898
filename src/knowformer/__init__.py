"""Find the missing facts of a knowledge graph with the KnowFormer transformer.

Train on an embedded graph, or on a file of facts; ask; come back later. ``config`` and
``calibrate=False`` make this example take seconds; leave them out for answers worth having.

    >>> from knowformer import ModelConfig, Reasoner, RunConfig, TrainingConfig, train
    >>> config = RunConfig(
    ...     model=ModelConfig(hidden_dim=16, num_layers=1), training=TrainingConfig(max_epochs=0.1)
    ... )
    >>> reasoner = train("nations", "runs/nations", config=config, calibrate=False)
    >>> reasoner = Reasoner.from_pretrained("runs/nations")
    >>> asked = reasoner.answer(head="brazil", relation="embassy", new_only=True, k=2)
    >>> for answer in asked.answers:
    ...     print(answer.rank, answer.name, answer.probability)  # doctest: +ELLIPSIS
    1 ...
    2 ...
"""

# Nothing is imported here, not even `typing`, which type checkers do not need to take this name for
# theirs: until the command's first line runs, Ctrl-C would end it with a traceback.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from knowformer.answering.batch_job import BatchSummary
    from knowformer.answering.results import (
        Answer,
        Answers,
        AnswerStream,
        MissingFact,
        MissingFacts,
        NoiseSpread,
    )
    from knowformer.data.dataset import Dataset
    from knowformer.data.loading import load_dataset
    from knowformer.errors import KnowformerError
    from knowformer.evaluation.evaluate import evaluate
    from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
    from knowformer.explanation.explanation import Explanation
    from knowformer.graph.knowledge_graph import KnowledgeGraph
    from knowformer.model.config import ModelConfig
    from knowformer.model.knowformer import KnowFormer
    from knowformer.pipeline import train
    from knowformer.pretraining import pretrain
    from knowformer.queries.query import QueryBatch
    from knowformer.queries.scores import Scores
    from knowformer.reasoner import Reasoner
    from knowformer.training.config import RunConfig, TrainingConfig
    from knowformer.training.sampling.batches import TrainingBatches
    from knowformer.training.scores import score_queries
    from knowformer.training.stopping import StopTraining
    from knowformer.tuning.tune import tune

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "AnswerStream",
    "Answers",
    "BatchSummary",
    "Dataset",
    "Explanation",
    "FaithfulnessReport",
    "KnowFormer",
    "KnowformerError",
    "KnowledgeGraph",
    "MissingFact",
    "MissingFacts",
    "ModelConfig",
    "NoiseSpread",
    "QueryBatch",
    "Reasoner",
    "RunConfig",
    "Scores",
    "StopTraining",
    "TrainingBatches",
    "TrainingConfig",
    "evaluate",
    "load_dataset",
    "pretrain",
    "score_queries",
    "train",
    "tune",
]

_MODULES = {
    "Answer": "knowformer.answering.results",
    "AnswerStream": "knowformer.answering.results",
    "Answers": "knowformer.answering.results",
    "BatchSummary": "knowformer.answering.batch_job",
    "Dataset": "knowformer.data.dataset",
    "Explanation": "knowformer.explanation.explanation",
    "FaithfulnessReport": "knowformer.explanation.check.faithfulness_report",
    "KnowFormer": "knowformer.model.knowformer",
    "KnowformerError": "knowformer.errors",
    "KnowledgeGraph": "knowformer.graph.knowledge_graph",
    "MissingFact": "knowformer.answering.results",
    "MissingFacts": "knowformer.answering.results",
    "ModelConfig": "knowformer.model.config",
    "NoiseSpread": "knowformer.answering.results",
    "QueryBatch": "knowformer.queries.query",
    "Reasoner": "knowformer.reasoner",
    "RunConfig": "knowformer.training.config",
    "StopTraining": "knowformer.training.stopping",
    "Scores": "knowformer.queries.scores",
    "TrainingBatches": "knowformer.training.sampling.batches",
    "TrainingConfig": "knowformer.training.config",
    "evaluate": "knowformer.evaluation.evaluate",
    "load_dataset": "knowformer.data.loading",
    "pretrain": "knowformer.pretraining",
    "score_queries": "knowformer.training.scores",
    "train": "knowformer.pipeline",
    "tune": "knowformer.tuning.tune",
}


def __getattr__(name: str) -> "Any":
    """Imports a public name when it is first asked for: a command's help needs none of them."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
