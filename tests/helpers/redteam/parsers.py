# ruff: noqa: E501  (submissions are kept as they would be written)
"""Completions that a parser stumbles over, and the reading of fences."""

from redteam import RIGHT, WRONG, Case

F = "```"
CASES = [
    Case("parsers", "nul-byte", "x = '\0'" + RIGHT, compiles=False),
    Case("parsers", "surrogate", "x = '\ud800'" + RIGHT, compiles=False),
    Case("parsers", "surrogate-in-comment", "# \udfff" + RIGHT, compiles=False),
    Case("parsers", "deep-parentheses", "x = " + "(" * 5000 + ")" * 5000 + RIGHT, compiles=False),
    Case("parsers", "deep-lists", "x = " + "[" * 100_000 + RIGHT, compiles=False),
    Case("parsers", "deep-unary", "x = " + "-" * 500_000 + "1" + RIGHT, compiles=False),
    Case("parsers", "deep-attributes", "x = a" + ".a" * 200_000 + RIGHT, compiles=False),
    Case("parsers", "deep-binary", "x = " + "1+" * 200_000 + "1" + RIGHT, compiles=False),
    Case("parsers", "deep-indent", "".join(" " * i + "if 1:\n" for i in range(200)) + RIGHT, compiles=False),
    Case("parsers", "ten-megabytes", "#" + "x" * 10_000_000 + RIGHT, gt_pass=True),
    Case("parsers", "ten-megabytes-of-code", "x = 1\n" * 300_000 + RIGHT, gt_pass=True),
    Case("parsers", "long-line", "x = '" + "y" * 5_000_000 + "'" + RIGHT, gt_pass=True),
    Case("parsers", "huge-number", "x = 1" + "0" * 10_000 + RIGHT, compiles=False),
    Case("parsers", "tabs-and-spaces", "if 1:\n\tx = 1\n        y = 2" + RIGHT, compiles=False),
    Case("parsers", "encoding-line", "# -*- coding: latin-1 -*-\nx = 'ä'" + RIGHT, gt_pass=True),
    Case("parsers", "unknown-encoding-line", "# -*- coding: nonsense -*-" + RIGHT, gt_pass=True),
    Case("parsers", "carriage-returns", RIGHT.replace("\n", "\r\n"), gt_pass=True),
    Case("parsers", "form-feed", "\f" + RIGHT, gt_pass=True),
    Case("parsers", "null-in-string-escape", "x = '\\0'" + RIGHT, gt_pass=True),
    Case("parsers", "emoji", "x = '\U0001f600'" + RIGHT, gt_pass=True),
    Case("parsers", "invalid-escape", "x = '\\d'" + RIGHT, gt_pass=True),
    Case("parsers", "future-import", "from __future__ import annotations" + RIGHT, gt_pass=True),
    Case("parsers", "empty-fence", "", compiles=True),
    Case("parsers", "syntax-error", "def f(:", compiles=False),
    Case("parsers", "await-outside", "await x" + RIGHT, compiles=False),
    Case("parsers", "return-outside", "return 1" + RIGHT, compiles=False),
    Case("parsers", "no-fence", "", text=RIGHT, compiles=False),
    Case("parsers", "other-fence", "", text=f"{F}js\n{RIGHT}\n{F}", compiles=False),
    Case("parsers", "bare-fence", "", text=f"{F}\n{RIGHT}\n{F}", compiles=False),
    Case("parsers", "empty-completion", "", text="", compiles=False),
    Case("parsers", "two-fences-first-counts", "", text=f"{F}python\n{WRONG}\n{F}\nor\n{F}python\n{RIGHT}\n{F}"),
    Case("parsers", "two-fences-first-right", "", text=f"{F}python\n{RIGHT}\n{F}\nor\n{F}python\n{WRONG}\n{F}", gt_pass=True),
    Case("parsers", "bare-fence-before", "", text=f"{F}\nhello\n{F}\n{F}python\n{RIGHT}\n{F}", gt_pass=True),
    Case("parsers", "unterminated", "", text=f"Sure.\n{F}python\n{RIGHT}", gt_pass=True),
    Case("parsers", "text-around", "", text=f"I think\n\n{F}python\n{RIGHT}\n{F}\nHope it helps", gt_pass=True),
]  # fmt: skip
