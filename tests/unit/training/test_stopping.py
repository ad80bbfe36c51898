import pytest

from knowformer.training.stopping import StopRequest, StopTraining


def test_a_request_is_kept_with_its_first_reason_and_errors_pass() -> None:
    request, heard = StopRequest(), list[str]()

    def call(word: str) -> None:
        heard.append(word)
        if word == "fail":
            raise ValueError(word)
        if word != "go on":
            raise StopTraining(word)

    heeded = request.heed(call)
    heeded("go on")
    assert request.reason is None
    heeded("first")
    heeded(word="second")
    assert request.reason == "first"
    with pytest.raises(ValueError, match="fail"):
        heeded("fail")
    assert heard == ["go on", "first", "second", "fail"]
