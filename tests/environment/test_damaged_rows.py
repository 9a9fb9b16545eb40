"""JSON lines that were damaged on their way: one line with the file, never fewer or other rows in silence."""

import gzip
import json
import random

import pytest

from projected_grpo.environment.foreign.rows import load_rows
from projected_grpo.errors import UserError
from projected_grpo.files import numbered_rows, read_jsonl, write_jsonl

ROWS = [{"n": n, "text": str(random.Random(n).random())} for n in range(200)]
RAW = gzip.compress("".join(json.dumps(row) + "\n" for row in ROWS).encode(), mtime=0)


def damaged(kind, seed):
    rng = random.Random(seed)
    raw = bytearray(RAW)
    place = rng.randrange(len(raw))
    if kind == "a bit is flipped":
        raw[place] ^= 1 << rng.randrange(8)
    elif kind == "the end is missing":
        del raw[place:]
    elif kind == "a piece is missing":
        del raw[place : place + rng.randrange(1, 50)]
    else:
        raw[place:place] = rng.randbytes(8)
    return bytes(raw)


@pytest.mark.parametrize(
    "kind", ["a bit is flipped", "the end is missing", "a piece is missing", "bytes are put in"]
)
def test_damaged_gzip_is_one_line(tmp_path, kind):
    path = tmp_path / "rows.jsonl.gz"
    for seed in range(150):
        path.write_bytes(damaged(kind, seed))
        try:
            found = list(read_jsonl(path))
        except UserError as error:
            assert str(error).startswith(f"{path}:") and "\n" not in str(error)
        else:  # time and name in the header are nobody's content
            assert found == ROWS


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "damaged gzip file"),
        (b'{"n": 1}\n', "damaged gzip file (Not a gzipped file"),
        (gzip.compress(b'{"n": 1}\n[1]\n', mtime=0), ":2: expected a JSON object, found list"),
        (gzip.compress(b'{"n": 1}\n\xff\n', mtime=0), ":2: not JSON"),
        (gzip.compress(b"[" * 100_000, mtime=0), ":1: nested too deeply"),
    ],
)
def test_what_is_no_row_is_one_line(tmp_path, content, message):
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        list(read_jsonl(path))
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "nested", [{"code": "-" * 20_000 + "1"}, {"test_list": ["assert f(1) == " + "1 + " * 1_500 + "1"]}]
)
def test_a_row_that_is_nested_too_deeply_is_left_out_and_named(tmp_path, nested):
    path = tmp_path / "rows.jsonl"
    good = {"task_id": 1, "text": "", "code": "def f(x): return x", "test_list": ["assert f(1) == 1"]}
    write_jsonl(path, [good, good | {"task_id": 2} | nested])
    reasons = [row.unjudged for row in load_rows(path, None).values()]
    assert reasons == ["", "it is nested too deeply to be read"]


def test_rows_have_their_lines(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"n": 0}\n\n{"n": 1}\r\n')
    assert list(numbered_rows(path)) == [(f"{path}:1", {"n": 0}), (f"{path}:3", {"n": 1})]
    write_jsonl(path.with_suffix(".jsonl.gz"), ROWS)
    assert list(read_jsonl(path.with_suffix(".jsonl.gz"))) == ROWS
