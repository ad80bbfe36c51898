import knowformer


def test_the_public_names_are_these_and_no_others() -> None:
    assert knowformer.__all__ == [
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
    assert all(hasattr(knowformer, name) for name in knowformer.__all__)
