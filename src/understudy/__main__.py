"""`python -m understudy`: the same as the `understudy` command."""

import sys

from understudy.cli.app import main

if __name__ == "__main__":
    sys.exit(main())
