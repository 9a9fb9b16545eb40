"""The one reader of Parquet files: every kind of damage is one line with the path."""

import pandas as pd
import pytest

from projected_grpo.errors import UserError
from projected_grpo.evaluator.made_pairs import code_pairs
from projected_grpo.evaluator.oracle import oracle_scores
from projected_grpo.parquet import read_parquet


@pytest.fixture
def path(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "text": ["x", None], "flag": [True, None], "list": [[1, 2], None]})
    frame.to_parquet(tmp_path / "some.parquet")
    return tmp_path / "some.parquet"


def test_it_reads_what_pandas_reads(path):
    pd.testing.assert_frame_equal(read_parquet(path), pd.read_parquet(path))
    pd.testing.assert_frame_equal(
        read_parquet(path, ["text", "a"]), pd.read_parquet(path, columns=["text", "a"])
    )


READERS = [read_parquet, lambda path: code_pairs(path, 1), oracle_scores]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("damage", ["truncated", "text", "gone"])
def test_damage_is_one_line_with_the_path(path, read, damage):
    whole = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(whole[: len(whole) // 2] if damage == "truncated" else b"a,text\n1,x\n")
    with pytest.raises(UserError, match=r"some\.parquet: ") as error:
        read(path)
    assert "\n" not in str(error.value)


def test_a_missing_column_is_named(path):
    with pytest.raises(UserError, match=r"some\.parquet: no column 'b'; needed: a, b"):
        read_parquet(path, ["a", "b"])
    with pytest.raises(UserError, match=r"some\.parquet: no column"):
        code_pairs(path, 1)
