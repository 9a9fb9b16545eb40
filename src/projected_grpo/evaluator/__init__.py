"""A critic that learns from contrast pairs made out of the agent's own traces (after arXiv:2408.02666).

One trace runs straight down: traces -> evaluator (asks a backend for a wrong evaluation) -> cards -> gate ->
memory, and from the memory to pair sets (made_pairs) and to the critic's error against the strict oracle
(rounds, oracle).
"""
