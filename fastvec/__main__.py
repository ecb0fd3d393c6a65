"""`python -m fastvec` is the command `fastvec`."""

import sys

from fastvec.cli import main

sys.exit(main())
