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
        "KnowformerError",
        "KnowledgeGraph",
        "MissingFact",
        "MissingFacts",
        "ModelConfig",
        "NoiseSpread",
        "Reasoner",
        "RunConfig",
        "StopTraining",
        "TrainingConfig",
        "evaluate",
        "load_dataset",
        "train",
        "tune",
    ]
    assert all(hasattr(knowformer, name) for name in knowformer.__all__)
