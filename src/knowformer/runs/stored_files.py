"""Files of a run folder, which anybody may have made: read as files, checked as what they are."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from knowformer.errors import BundleError
from knowformer.storage.atomic_files import write_text
from knowformer.storage.plain_files import read_plain

MOST_BYTES = 2**30  # of JSON and TOML: the names of tens of millions of entities


def read_text(path: Path) -> str:
    """Reads a file of a run folder.

    Raises:
        BundleError: it is missing, no regular file, far too large or not UTF-8.
    """
    try:
        return read_plain(path, most=MOST_BYTES).decode("utf-8")
    except FileNotFoundError:
        raise BundleError(
            f"Expected a run folder with {path.name}, found none at {path.parent}. Make one with "
            "`train()`."
        ) from None
    except OSError as error:
        raise BundleError(f"Expected a readable file at {path}, got '{error.strerror}'.") from error
    except UnicodeDecodeError as error:
        raise BundleError(f"Expected a readable file at {path}, got: {error}.") from error


def write_json(path: Path, content: Any) -> None:
    """Writes JSON atomically, for people as much as for programs."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def first_fault(error: ValidationError) -> str:
    """Returns what is wrong with a file's content, and where in it."""
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'the top'}"
