"""A run's curves as TensorBoard events, for those who watch runs there; the Parquet file stays the record."""

import math
import shutil
from pathlib import Path


def write_events(folder: Path, rows: list[dict]) -> None:
    """Write every numeric column of the steps' rows as a scalar; earlier events of the cell are replaced."""
    from torch.utils.tensorboard import SummaryWriter  # seconds to import, and only some want it

    shutil.rmtree(folder, ignore_errors=True)
    with SummaryWriter(str(folder)) as writer:
        for row in rows:
            for name, value in row.items():
                if isinstance(value, int | float) and name != "step" and math.isfinite(value):
                    writer.add_scalar(name, value, row["step"])
