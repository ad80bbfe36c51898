import knowformer


def test_the_public_names_are_these_and_no_others() -> None:
    assert knowformer.__all__ == [
        "Answer",
        "Answers",
        "Dataset",
        "KnowformerError",
        "KnowledgeGraph",
        "ModelConfig",
        "Reasoner",
        "RunConfig",
        "TrainingConfig",
        "evaluate",
        "load_dataset",
        "train",
    ]
    assert all(hasattr(knowformer, name) for name in knowformer.__all__)
