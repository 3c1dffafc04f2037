"""Makes `python -m lonnymq` the same as `lonnymq`."""

import sys

from lonnymq.cli import main

if __name__ == "__main__":
    sys.exit(main())
