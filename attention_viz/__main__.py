"""`python -m attention_viz`: the command line."""

import sys

from attention_viz.cli import main

if __name__ == "__main__":
    sys.exit(main())
