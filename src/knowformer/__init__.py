"""Reason over knowledge graphs with the KnowFormer transformer.

from knowformer import Reasoner, train

reasoner = train("umls-pykeen", "runs/umls")
reasoner.answer(head="aspirin", relation="treats")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from knowformer.answering.batch_job import BatchSummary
    from knowformer.answering.results import (
        Answer,
        Answers,
        AnswerStream,
        MissingFact,
        MissingFacts,
        NoiseSpread,
    )
    from knowformer.data.dataset import Dataset, load_dataset
    from knowformer.errors import KnowformerError
    from knowformer.evaluation.evaluate import evaluate
    from knowformer.explanation.check.faithfulness_report import FaithfulnessReport
    from knowformer.explanation.explanation import Explanation
    from knowformer.graph.knowledge_graph import KnowledgeGraph
    from knowformer.model.config import ModelConfig
    from knowformer.model.knowformer import KnowFormer
    from knowformer.pipeline import train
    from knowformer.queries.query import QueryBatch
    from knowformer.queries.scores import Scores
    from knowformer.reasoner import Reasoner
    from knowformer.training.config import RunConfig, TrainingConfig
    from knowformer.training.sampling.batches import TrainingBatches
    from knowformer.training.scores import score_queries

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
    "TrainingBatches",
    "TrainingConfig",
    "evaluate",
    "load_dataset",
    "score_queries",
    "train",
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
    "Scores": "knowformer.queries.scores",
    "TrainingBatches": "knowformer.training.sampling.batches",
    "TrainingConfig": "knowformer.training.config",
    "evaluate": "knowformer.evaluation.evaluate",
    "load_dataset": "knowformer.data.dataset",
    "score_queries": "knowformer.training.scores",
    "train": "knowformer.pipeline",
}


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first asked for: a command's help needs none of them."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
