from knowformer.explanation.check.faithfulness_report import (
    CurvePoint,
    FaithfulnessCurve,
    FaithfulnessReport,
)


def test_a_report_becomes_json_and_a_table(report: FaithfulnessReport) -> None:
    assert FaithfulnessReport.model_validate_json(report.model_dump_json()) == report
    assert len(report.to_pandas()) == sum(len(curve.points) for curve in report.curves)
    assert report.verdicts()[0].startswith("The facts of 5 paths ")
    assert report.verdicts()[-1].startswith("the 10 most attended entities ")


def test_a_curve_is_found_by_what_it_shows(report: FaithfulnessReport) -> None:
    curve = report.curve("attended", "insertion", "score")
    assert curve is not None
    assert (curve.evidence, curve.mode, curve.measure) == ("attended", "insertion", "score")
    assert report.model_copy(update={"curves": []}).curve("attended", "insertion", "score") is None


def test_verdicts_go_by_the_largest_deletion_and_its_interval(report: FaithfulnessReport) -> None:
    def judged(named: float, low: float) -> list[str]:
        points = [
            CurvePoint(
                size=size, pieces=size, named=n, random=0.0, difference=n, low=low, high=n + 1
            )
            for size, n in ((1, 9.0), (5, named))
        ]
        curve = FaithfulnessCurve(
            evidence="paths", mode="deletion", measure="log_odds", num_predictions=1, points=points
        )
        return report.model_copy(update={"curves": [curve]}).verdicts()

    assert judged(2.0, 0.5) == ["The facts of 5 paths carry the answer"]
    assert judged(0.5, 0.1) == ["The facts of 5 paths contribute"]
    assert judged(2.0, -0.1) == ["The facts of 5 paths are no better than random"]
