"""`python -m projected_grpo` is `projected-grpo`."""

import sys

from projected_grpo.cli import main

if __name__ == "__main__":
    sys.exit(main())
