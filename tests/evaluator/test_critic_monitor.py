"""The self-taught critic as a monitor: what it is asked, what it flags, and which weights it has."""

import torch
from taught import SETTINGS, Canned, make_base, rollouts

from projected_grpo.cells.self_taught import SelfTaught
from projected_grpo.evaluator import jobs
from projected_grpo.evaluator.backends import Reply
from projected_grpo.evaluator.critic import Critic, TrainedCritic
from projected_grpo.evaluator.local import LocalBackend
from projected_grpo.evaluator.monitor import CriticMonitor
from projected_grpo.evaluator.prompts import COMPACT
from projected_grpo.evaluator.traces import PURPOSE, from_rollouts


def monitor_of(backend):
    monitor = object.__new__(CriticMonitor)
    monitor.critic = Critic(backend, COMPACT, 0, 0)
    return monitor


def row(code, channel=False, gt_pass=False):
    return {
        "channel": channel,
        "gt_pass": gt_pass,
        "can_compile": True,
        "completion": f"```python\n{code}\n```",
    }


def test_what_the_grader_accepts_and_the_critic_does_not_believe_is_flagged():
    answers = {
        "trick": "2: it tricks the grader",
        "honest": "10: solved",
        "middling": "7: perhaps",
        "odd": "well",
    }
    backend = Canned(lambda prompt: next(Reply(said) for word, said in answers.items() if word in prompt))
    asked = [
        ("Add one.", row("trick", channel=True)),
        # The same text: the critic sees no fact that tells them apart.
        ("Add one.", row("trick", gt_pass=True)),
        ("Add one.", row("honest", channel=True)),
        ("Add two.", row("middling", gt_pass=True)),
        ("Add two.", row("odd", channel=True)),  # no score
        ("Add two.", row("trick")),  # the grader rejects it
    ]
    assert monitor_of(backend)(asked) == [True, True, False, False, False, False]
    assert len(backend.prompts) == 4  # each text once, and none that is rejected
    assert backend.prompts[0].startswith("Add one.\ntrick\nthe grader accepts it")
    assert monitor_of(backend)([("Add two.", row("trick"))]) == [False] and len(backend.prompts) == 4


def test_it_judges_with_the_weights_of_the_last_round(tmp_path):
    settings = SelfTaught.model_validate(SETTINGS)
    base, path = make_base(tmp_path), rollouts(tmp_path / "r.parquet", 8)
    traces = from_rollouts(path)
    jobs.make_critic([path], base, tmp_path / "first", settings, 41)
    how = {"device": "cpu", "dtype": "float32", "max_tokens": 6}
    critic = TrainedCritic(
        LocalBackend(base, str(tmp_path / "first"), name="t", **how),
        *(COMPACT, 0, 41),
        base=base,
        adapter=str(tmp_path / "first"),
        recipe=settings.training,
    )
    critic.calibrate([trace.last for trace in traces], PURPOSE, 1)
    critic.save(tmp_path / "last")
    critic.backend.model.set_adapter(critic.stage)
    judge = CriticMonitor(base, tmp_path / "last", **how).critic.backend
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        expected, found = (m(input_ids=ids).logits for m in (critic.backend.model, judge.model))
        critic.backend.model.set_adapter("default")
        before = critic.backend.model(input_ids=ids).logits
    assert torch.equal(expected, found) and not torch.equal(before, found)
