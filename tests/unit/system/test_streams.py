import os
import subprocess
import sys

LOOK = """
import os, sys
from knowformer.system.streams import open_missing_streams
open_missing_streams()
print("said", file=sys.stderr)
handle = os.open(os.devnull, os.O_RDONLY)
os._exit(handle)
"""


def test_no_file_takes_the_number_of_a_closed_stream() -> None:
    done = subprocess.run(
        ["bash", "-c", f"exec {sys.executable} -c '{LOOK}' <&- >&- 2>&-"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        timeout=300,
    )
    assert done.returncode == 3
