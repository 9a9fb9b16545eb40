"""`python -m projected_grpo` is `projected-grpo`."""

import sys

from projected_grpo.cli import main

sys.exit(main())
