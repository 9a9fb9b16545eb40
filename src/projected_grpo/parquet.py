"""Parquet files: written whole, read with one-line errors: a truncated or edited one is named, never read in part."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from projected_grpo.errors import UserError
from projected_grpo.files import atomic


def read_parquet(path: str | Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a Parquet file, all of it or the named columns; raises as `read_arrow` does."""
    return read_arrow(path, columns).to_pandas()


def read_arrow(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file as an Arrow table, all of it or the named columns.

    Raises UserError with the path where it is absent, truncated, no Parquet, or lacks one of `columns`.
    """
    try:
        file = pq.ParquetFile(path)
        found = file.schema_arrow.names
        missing = [name for name in columns or () if name not in found]
        if missing:
            raise UserError(f"{path}: no column {missing[0]!r}; needed: {', '.join(columns)}")  # type: ignore[arg-type]
        # As a list: pyarrow takes None for "all", and passes over names that it does not find.
        return file.read(columns=list(columns) if columns else None, use_threads=False)
    except FileNotFoundError as error:
        raise UserError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: unreadable as Parquet ({reason}); delete it to remake it") from error


def write_parquet(path: Path, rows: list[dict], columns: Sequence[str] = ()) -> None:
    """Write rows as Parquet, atomically; a column of nulls alone is stored as float.

    columns: of a file without rows.
    """
    frame = pd.DataFrame(rows) if rows else pd.DataFrame(columns=list(columns))
    empty = [name for name in frame if frame[name].isna().all()]
    with atomic(path) as temporary:
        frame.astype(dict.fromkeys(empty, "float64")).to_parquet(temporary, index=False)
