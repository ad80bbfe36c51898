"""``python -m knowformer`` does what ``knowformer`` does."""

import sys

from knowformer.interfaces.cli import main

if __name__ == "__main__":
    sys.argv[0] = "knowformer"  # in help and in stored commands, not the path of this file
    main()
