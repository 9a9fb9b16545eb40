"""Rows of other benchmarks, whose check is Python of its own: HumanEval, MBPP, asserts that are no `call == literal`.

rows    the formats, and what is common to them
check   the check, run in a process of its own against answers that come from another one
small_pytest  what a check has of pytest
taint   whether what a check asks can depend on an answer
judge   from completions to verdicts
"""
