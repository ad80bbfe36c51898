import gc
import subprocess
import sys

import pytest

from knowformer.system import allocator

MEASURE = """
import resource
import runpy
import sys

if len(sys.argv) > 1:  # the file alone: importing the package takes seconds
    runpy.run_path(sys.argv[1])["keep_freed_memory"]()
def touch():
    b"x" * (1 << size)  # 8 MB: a mapping of its own, unless that is turned off
size = 23
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's allocator")
def test_a_freed_buffer_is_used_again_without_new_pages() -> None:
    def page_faults(*arguments: str) -> int:
        command = [sys.executable, "-c", MEASURE, *arguments]
        return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    assert page_faults(allocator.__file__) < page_faults() / 5


def test_what_is_loaded_is_no_more_work_for_the_collector() -> None:
    loaded = [[] for _ in range(1000)]
    try:
        allocator.keep_loaded_objects()
        assert gc.get_freeze_count() >= 1000
        assert not any(found is loaded for found in gc.get_objects())
    finally:
        gc.unfreeze()
