"""Values of the untrusted side: compared exactly as Python's `==` on plain values, whatever text arrives."""

import itertools
import math
import random
import time

import pytest

from projected_grpo.sandbox.values import encode, equals, size_limit

LEAVES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**53,
    -(2**70),
    10**30,
    0.0,
    -0.0,
    1.0,
    0.1,
    1e300,
    math.inf,
    -math.inf,
]
LEAVES += ["", "1", "a\n\"'\\", "\ud800", "é\U0001f600", b"", b"x\xff", 1j, complex(1, 0), "l", "x"]


def draw(rng, depth=0):
    """A random plain value; what nests may hold hashable values only where it must."""
    kind = rng.randrange(8) if depth < 3 else 0
    if kind < 3:
        return rng.choice(LEAVES)
    items = [draw(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 3 or kind == 4:
        return items if kind == 3 else tuple(items)
    hashable = [item for item in items if not _holds_unhashable(item)]
    if kind == 5:
        return set(hashable)
    if kind == 6:
        return frozenset(hashable)
    return {key: draw(rng, depth + 1) for key in hashable}


def _holds_unhashable(value):
    try:
        hash(value)
    except TypeError:
        return True
    return False


def same(text, value):
    return equals(text.encode(), value, size_limit(value))


def test_equal_exactly_where_python_says_so():
    rng = random.Random(0)
    values = LEAVES + [draw(rng) for _ in range(300)]
    pairs = list(itertools.product(LEAVES, LEAVES)) + [
        (rng.choice(values), rng.choice(values)) for _ in range(3000)
    ]
    agreed = [0, 0]
    for left, right in pairs + [(value, value) for value in values]:
        assert same(encode(left), right) == (left == right), (left, right)
        agreed[left == right] += 1
    assert min(agreed) > 300


def test_nearly_equal_values_differ():
    assert not same(encode([1, [2, 3]]), [1, [2, 4]])
    assert not same(encode((1, 2)), [1, 2])
    assert not same(encode([1, 2, 3]), [1, 2])
    assert not same(encode({1: 2}), {1: 3})
    assert not same(encode(math.nan), math.nan)
    assert same(encode([True, 1.0]), [1, 1])


def test_a_pair_of_surrogates_is_not_the_character_that_it_joins_to():
    pair, joined = "\ud83d\ude00", "\U0001f600"
    for left, right in ((pair, joined), ([pair], [joined]), ({pair: 1}, {joined: 1}), ({pair}, {joined})):
        assert not same(encode(left), right) and not same(encode(right), left)
        assert same(encode(left), left) and same(encode(right), right)


def test_a_set_of_one_hash_takes_no_longer():
    colliding = {i * ((1 << 61) - 1) for i in range(1, 3000)}
    text = '["S",' + ",".join(f'["i","{value:#x}"]' for value in colliding) + "]"
    began = time.process_time()
    assert not equals(text.encode(), set(range(3000)), 10**7)
    assert time.process_time() - began < 0.5


class Liar(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize(
    "value",
    [
        Liar(1),
        [Liar(1)],
        {"a": Liar(1)},
        object(),
        int,
        range(3),
        iter([]),
        lambda: 1,
        type("L", (list,), {})(),
    ],
)
def test_anything_else_is_no_plain_value(value):
    assert encode(value) == '["x"]'


def test_cycles_and_depth_are_no_plain_value():
    cycle = []
    cycle.append(cycle)
    assert encode(cycle) == '["x"]'
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert encode(deep) == '["x"]'


GARBAGE = [
    b"",
    b"x",
    b"[",
    b"[]",
    b"{}",
    b"[[",
    b'["i"]',
    b'["i","zz"]',
    b'["f"]',
    b'["d",1]',
    b'["d",["l"],1]',
    b'["S",["l"]]',
    b'["q",1]',
    b'{"i":1}',
    b"NaN",
    b"\xff\xfe",
    b'["t"',
    b'["c","0x1"]',
    b'["x"]',
    b'["l",{}]',
    b"[1]",
    b"[null]",
    b"[[1]]",
    b'["S",["d"]]',
    b"1" * 5000,
    b"[" * 50_000,
]


@pytest.mark.parametrize("text", GARBAGE)
@pytest.mark.parametrize("expected", [0, None, "", [], (), {}, set(), [1], {1: 2}, {1}, math.inf])
def test_garbage_is_wrong_and_no_error(text, expected):
    assert not equals(text, expected, 10**6)


def test_too_long_a_text_is_not_parsed():
    assert not equals(b"1" + b" " * 10**6, 1, size_limit(1))
