"""Imports your own data: files of many formats, and graphs of other libraries."""

from knowformer.audit.audit import Audit, audit
from knowformer.choices import Format
from knowformer.data.converters import (
    dataset_from_pandas,
    from_hetero,
    from_networkx,
    from_pandas,
    from_pyg,
    to_hetero,
    to_networkx,
    to_pandas,
    to_pyg,
)
from knowformer.data.dataset import make_dataset
from knowformer.data.readers.columns import Dialect
from knowformer.data.splitting import SplitSizes
from knowformer.importing.importing import ImportOptions, ImportResult, import_files

__all__ = [
    "Audit",
    "Dialect",
    "Format",
    "ImportOptions",
    "ImportResult",
    "SplitSizes",
    "audit",
    "dataset_from_pandas",
    "from_hetero",
    "from_networkx",
    "from_pandas",
    "from_pyg",
    "import_files",
    "make_dataset",
    "to_hetero",
    "to_networkx",
    "to_pandas",
    "to_pyg",
]
