"""Own data in: files of many formats to audited data sets, and other libraries' graphs."""

from knowformer.graph.splitting import Shares
from knowformer.sources.audit import Audit, audit
from knowformer.sources.converters import (
    dataset_from_pandas,
    from_networkx,
    from_pandas,
    from_pyg,
    make_dataset,
    to_networkx,
    to_pandas,
    to_pyg,
)
from knowformer.sources.delimited import Dialect
from knowformer.sources.formats import Format
from knowformer.sources.importing import ImportOptions, ImportResult, import_files

__all__ = [
    "Audit",
    "Dialect",
    "Format",
    "ImportOptions",
    "ImportResult",
    "Shares",
    "audit",
    "dataset_from_pandas",
    "from_networkx",
    "from_pandas",
    "from_pyg",
    "import_files",
    "make_dataset",
    "to_networkx",
    "to_pandas",
    "to_pyg",
]
