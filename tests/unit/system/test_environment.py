import json

from knowformer.system.environment import describe_environment


def test_the_record_is_json_and_says_what_made_a_result() -> None:
    record = json.loads(json.dumps(describe_environment()))
    assert record["versions"]["torch"].startswith("2.")
    for package in ("knowformer", "numba", "llvmlite"):  # what compiles the kernels, too
        assert record["versions"][package] != "not installed"
    assert record["hardware"]["cores"] >= 1
