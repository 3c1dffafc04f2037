"""`python -m lonnymq` is `lonnymq`."""

import sys

from lonnymq.cli import main

sys.exit(main())
