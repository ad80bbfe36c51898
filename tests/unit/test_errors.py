import pytest

from knowformer import errors
from knowformer.errors import suggest


def test_a_slip_in_the_spelling_is_answered_with_the_nearest_names() -> None:
    assert suggest("asprin", ["aspirin", "warfarin", "zinc"]) == " Did you mean 'aspirin'?"


def test_the_same_name_in_other_capitals_is_the_only_suggestion() -> None:
    assert suggest("ASPIRIN", ["aspirine", "Aspirin"]) == " Did you mean 'Aspirin'?"


def test_a_part_of_a_long_name_finds_the_name() -> None:
    known = ["/people/person/place_of_birth", "/film/film/genre"]
    assert suggest("birth", known) == " Did you mean '/people/person/place_of_birth'?"


def test_nothing_near_gives_no_suggestion() -> None:
    assert suggest("qqqq", ["aspirin", "warfarin"]) == ""
    assert suggest("a", []) == ""


def test_suggestions_are_few() -> None:
    known = [f"relation{number}" for number in range(9)]
    assert suggest("relatio", known).count("'") == 2 * 3
    assert suggest("relatio", known, limit=1).count("'") == 2


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [
        (errors.KnowformerError, 1),
        (errors.NonFiniteLossError, 1),
        (errors.DataError, 2),
        (errors.DownloadError, 2),
        (errors.VocabularyError, 2),
        (errors.ConfigError, 2),
        (errors.MissingPackageError, 2),
        (errors.BackendUnavailableError, 2),
        (errors.BundleError, 2),
        (errors.StorageError, 2),
    ],
)
def test_exit_codes_tell_the_users_fault_from_ours(
    kind: type[errors.KnowformerError], exit_code: int
) -> None:
    assert kind.exit_code == exit_code


def test_a_package_that_is_not_installed_is_named_with_its_purpose_and_its_extra() -> None:
    errors.require_package("pytest", extra=None, purpose="test")
    message = r"no_such_package to draw, found none\. .* pip install 'knowformer\[plots\]'\."
    with pytest.raises(errors.MissingPackageError, match=message):
        errors.require_package("no_such_package", extra="plots", purpose="draw")
    with pytest.raises(errors.MissingPackageError, match=r"pip install no_such_package\.$"):
        errors.require_package("no_such_package", extra=None, purpose="draw")


def test_errors_are_caught_as_the_builtin_ones_that_they_refine() -> None:
    assert issubclass(errors.VocabularyError, LookupError)
    assert issubclass(errors.ConfigError, ValueError)
