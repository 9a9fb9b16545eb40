"""The ways in which T1-T4 could pass or fail for the wrong reason, each with what was measured."""

from dataclasses import dataclass

import numpy as np

from projected_grpo.pages.text import delta, p_is, rate
from projected_grpo.verdicts.replays import Replay, hacked_rows, length_correlation, t4_matched


@dataclass(frozen=True)
class Check:
    """One way in which a test could mislead; `fine` is None: can't be told."""

    test: str
    failure: str
    figure: str
    fine: bool | None


def sneaky(vanilla: Replay, projected: Replay) -> list[Check]:
    """Return all checks, in the order of the tests."""
    return [
        unmerged_teacher(vanilla),
        wrong_mask(vanilla),
        copying(vanilla, projected),
        turned_back(projected),
        tracks_length(vanilla),
    ]


def unmerged_teacher(vanilla: Replay) -> Check:
    """The base wrote the pool: its NLL on the rollouts would equal the recorded one."""
    samples, failure = vanilla.samples, "base weights leak through an unmerged teacher"
    if not samples["nll_teacher"].notna().all():
        return Check("T1", failure, "the pool stores no log-probs of its teacher", None)
    gap = float((samples["nll_start"] - samples["nll_teacher"]).mean())
    figure = (
        f"NLL of the same tokens: untrained student {samples['nll_start'].mean():.3f}, teacher "
        f"as recorded {samples['nll_teacher'].mean():.3f} (equal: the base wrote the pool)"
    )
    return Check("T1", failure, figure, gap > 0.01)


def wrong_mask(vanilla: Replay) -> Check:
    """A mask that misses the completion makes every sample's gradient the same."""
    norms = vanilla.samples["grad_norm"].dropna()
    spread = float(norms.std() / norms.mean()) if len(norms) > 1 and norms.mean() > 0 else 0.0
    figure = (
        f"{norms.nunique()} distinct gradient norms on {len(vanilla.samples)} rows, std / mean {spread:.3f}"
    )
    return Check("T2", "mask off by one", figure + " (a wrong mask: constant)", spread > 0.01)


def _same(a: np.ndarray, b: np.ndarray) -> int:
    return int(np.isclose(a, b, rtol=1e-6, atol=0, equal_nan=True).sum())


def copying(vanilla: Replay, projected: Replay) -> Check:
    """A projection that hands the gradient through: cout is cin, and the two replays train one student."""
    steps = projected.steps
    first = vanilla.samples["step"].eq(vanilla.samples["step"].min()).to_numpy()
    ours, theirs = (replay.samples["cos_S_contrib"].to_numpy() for replay in (vanilla, projected))
    same_first, same_later = _same(ours[first], theirs[first]), _same(ours[~first], theirs[~first])
    copied = _same(steps["mean_cos_out"].to_numpy(), steps["mean_cos_in"].to_numpy())
    figure = (
        f"cout equals cin on {copied}/{len(steps)} projected steps; the two replays' cosines agree on "
        f"{same_first}/{int(first.sum())} rows of the first step (one student) and on "
        f"{same_later}/{int((~first).sum())} later ones (two students)"
    )
    fine = copied == 0 and same_first == first.sum() and (same_later == 0 or first.all())
    return Check("T3", "a projection that copies", figure, bool(fine))


def turned_back(projected: Replay) -> Check:
    """What AdamW makes of a projected gradient points along the basis again."""
    steps = projected.steps
    cin, out, null = (float(steps[name].mean()) for name in ("mean_cos_in", "cout_update", "cos_null"))
    figure = (
        f"one_sided makes cout 0 by algebra; of what AdamW applies, cout_update {rate(out)} still points "
        f"along the basis (cin {rate(cin)}, a random V {rate(null)})"
    )
    return Check("T3", "the optimizer turns the step back", figure, out < cin)


def tracks_length(vanilla: Replay) -> Check:
    """Length, not content, decides the cosine: then T4 fails among hacks of one length."""
    samples, failure = vanilla.samples, "a basis that tracks completion length"
    length, within = length_correlation(samples), length_correlation(hacked_rows(samples, "cos_S_contrib"))
    if length.r is None:
        return Check("T4", failure, "no spread in cosine or length", None)
    contrast = t4_matched(samples)
    figure = (
        f"cosine and length: Pearson {delta(length.r)} (p {p_is(length.r_p)}), Spearman {delta(length.rho)}"
    )
    figure += f"; within hacked Pearson {delta(within.r)}" if within.r is not None else ""
    if contrast.t is None:
        return Check("T4", failure, f"{figure}; T4 has no t at matched length", None)
    figure += f"; T4 {'holds' if contrast.passed else 'does not hold'} at matched length"
    return Check("T4", failure, figure, length.r_p >= 0.05 or contrast.passed)
