"""What `project` refuses, in one line, and what it leaves alone."""

import shutil
from types import SimpleNamespace

import pytest
import torch
from optional_packages import need
from peft import AdaLoraConfig, LoraConfig, VeraConfig, get_peft_model
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
from trl_step import PAIRS, load, make_trainer, write_checkpoint

from projected_grpo.antipasto import attach
from projected_grpo.cli import main
from projected_grpo.errors import UserError
from projected_grpo.files import write_json
from projected_grpo.integrations.adapted import adapted
from projected_grpo.integrations.projection import check, refuse
from projected_grpo.method.basis import Basis
from projected_grpo.method.pairs import Pair, write_pairs
from projected_grpo.trl import project


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "words.yaml"
    write_pairs(path, [Pair(**pair) for pair in PAIRS])
    return path


@pytest.fixture(scope="module")
def bases(folder, pairs, tmp_path_factory):
    """A basis of each adapter, as the command writes them."""
    out = tmp_path_factory.mktemp("bases")
    assert main(["basis", str(folder), str(pairs), str(out / "antipasto.safetensors"), "--top-k", "3"]) == 0
    words = [str(folder), str(pairs), str(out / "lora.safetensors"), "--adapter", "lora", "--rank", "4"]
    assert main(["basis", *words]) == 0
    return out


def lora(folder, rank=4):
    return get_peft_model(load(folder), LoraConfig(r=rank, target_modules="all-linear"))


def one_line(call):
    with pytest.raises(UserError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_command_s_basis_is_of_the_model_and_the_lora_that_it_wrote(folder, bases):
    from peft import PeftModel

    basis = Basis.load(bases / "antipasto.safetensors")
    check(basis, adapted(attach(load(folder))))
    assert all(torch.allclose(V @ V.T, torch.eye(len(V)), atol=1e-5) for V in basis.V.values())
    begun = PeftModel.from_pretrained(load(folder), bases / "lora", is_trainable=True)
    check(Basis.load(bases / "lora.safetensors"), adapted(begun))


def test_the_lora_that_the_command_wrote_is_a_model_of_the_command(bases, pairs, tmp_path):
    again = tmp_path / "again.safetensors"
    assert main(["basis", str(bases / "lora"), str(pairs), str(again), "--adapter", "lora"]) == 0
    first, second = Basis.load(bases / "lora.safetensors"), Basis.load(again)
    assert second.metadata["factors_hash"] == first.metadata["factors_hash"]
    assert all(torch.equal(V, second.V[name]) for name, V in first.V.items())


def test_a_lora_of_experts_is_one_module_for_each_of_their_parameters(tmp_path):
    config = Qwen3MoeConfig(
        vocab_size=32, hidden_size=16, intermediate_size=32, moe_intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, num_experts=4, num_experts_per_tok=2,
    )  # fmt: skip
    torch.manual_seed(1)
    experts = ["experts.gate_up_proj", "experts.down_proj"]
    how = LoraConfig(r=2, target_modules=["q_proj"], target_parameters=experts, init_lora_weights=False)
    model = get_peft_model(Qwen3MoeForCausalLM(config), how)
    found = adapted(model)
    factors = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    assert len(found.parameters) == 3 and {id(p) for p in found.trained} == {id(p) for _, p in factors}
    sizes = {own: (one.numel(), *one.shape[:1]) for own, one in found.weights.items()}
    assert sorted(sizes.values()) == [(256, 16), (512, 4), (1024, 4)]

    axes = {name: torch.eye(size)[:3] for name, size in found.sizes.items()}
    facts = {"adapter": "lora", "model_hash": found.model_hash(), "factors_hash": found.factors_hash()}
    basis = Basis(axes, {name: torch.ones(3) for name in axes}, facts)
    check(basis, found)
    callback = project(basis, gate="no_gate")
    args = SimpleNamespace(deepspeed=None, optim="adamw_torch", output_dir=str(tmp_path))
    state = SimpleNamespace(global_step=0)
    callback.on_train_begin(args, state, None, model=model, processing_class=None)
    model(input_ids=torch.arange(12)[None], labels=torch.arange(12)[None]).loss.backward()
    before = found.flat(p.grad.clone() for p in found.trained)
    callback.on_pre_optimizer_step(args, state, None, model=model)
    for name, g in found.flat(p.grad for p in found.trained).items():
        assert not g[:3].any() and g[3:].any() and torch.equal(g[3:], before[name][3:])


def test_an_adapter_that_is_no_lora_is_refused(folder):
    for how in (AdaLoraConfig(r=2, init_r=2, total_step=9, target_modules=["q_proj"]), VeraConfig(r=2)):
        assert "none" in one_line(lambda how=how: adapted(get_peft_model(load(folder), how)))


@pytest.mark.parametrize(
    "name, model, words",
    [
        ("antipasto", lambda folder: lora(folder), "adapter antipasto"),
        ("lora", lambda folder: attach(load(folder)), "adapter lora"),
        ("lora", lambda folder: lora(folder, 2), "rank 2"),
        ("lora", lambda folder: lora(folder), "other LoRA factors"),
    ],
)
def test_a_basis_of_another_adapter_rank_or_start_is_refused(name, model, words, folder, bases):
    basis = Basis.load(bases / f"{name}.safetensors")
    assert words in one_line(lambda: check(basis, adapted(model(folder))))


def test_a_basis_of_another_model_is_refused(folder, bases):
    other = load(folder)
    with torch.no_grad():
        other.model.layers[0].mlp.up_proj.weight[0, 0] += 0.1
    basis = Basis.load(bases / "antipasto.safetensors")
    assert "weights" in one_line(lambda: check(basis, adapted(attach(other))))
    few = get_peft_model(load(folder), LoraConfig(r=4, target_modules=["q_proj"]))
    assert "not adapted" in one_line(lambda: check(Basis.load(bases / "lora.safetensors"), adapted(few)))
    narrow = attach(load(folder, dtype=torch.bfloat16))
    assert "dtype" in one_line(lambda: check(basis, adapted(narrow)))


def test_a_basis_without_axes_is_refused(folder, bases):
    none = Basis({}, {}, Basis.load(bases / "antipasto.safetensors").metadata)
    assert "no axes" in one_line(lambda: check(none, adapted(attach(load(folder)))))


def test_a_basis_of_the_pipeline_s_own_lora_is_refused(folder, bases):
    basis = Basis.load(bases / "lora.safetensors")
    facts = {"knobs": '{"adapter": "lora"}', "model_hash": basis.metadata["model_hash"]}
    assert "factors" in one_line(lambda: check(Basis(basis.V, basis.S, facts), adapted(lora(folder))))


@pytest.mark.parametrize(
    "arguments, optimizer",
    [
        ({"deepspeed": "zero3.json"}, torch.optim.AdamW),
        ({"optim": "adamw_8bit"}, torch.optim.AdamW),
        ({"optim": "paged_adamw_8bit"}, torch.optim.AdamW),
        ({"optim": "galore_adamw_layerwise"}, torch.optim.AdamW),
        ({"optim": "adalomo"}, torch.optim.AdamW),
        ({}, type("AdamW8bit", (), {})),
        ({}, type("LayerWiseDummyOptimizer", (), {})),
    ],
)
def test_what_steps_on_gradients_that_no_callback_sees_is_refused(arguments, optimizer):
    args = SimpleNamespace(**{"deepspeed": None, "optim": "adamw_torch", **arguments})
    held = SimpleNamespace(optimizer=object.__new__(optimizer))
    assert one_line(lambda: refuse(args, held, torch.nn.Linear(2, 2)))


def test_ordinary_optimizers_pass():
    args = SimpleNamespace(deepspeed=None, optim="adamw_torch_fused")
    refuse(args, torch.optim.AdamW(torch.nn.Linear(2, 2).parameters()), torch.nn.Linear(2, 2))


@pytest.mark.parametrize(
    "words, settings",
    [
        ("neither", {}),
        ("did you mean", {"gate": "one_side"}),
        ("overshoot", {"overshoot": 0}),
        ("refresh", {"refresh": 5}),
        ("k 0", {"k": 0}),
        ("drop_bottom_frac", {"drop_bottom_frac": 1.0}),
    ],
)
def test_settings_that_mean_nothing_are_refused(words, settings):
    basis = {} if words == "neither" else {"basis": Basis({}, {}, {})}
    assert words in one_line(lambda: project(**basis, **settings))


def test_a_damaged_basis_file_is_refused(tmp_path):
    (tmp_path / "b.safetensors").write_bytes(b"no basis")
    assert "b.safetensors" in one_line(lambda: project(tmp_path / "b.safetensors"))


def test_a_model_without_an_adapter_is_refused(folder):
    assert "none" in one_line(lambda: adapted(load(folder)))
    assert "already" in one_line(lambda: attach(attach(load(folder))))


def test_what_is_sampled_has_a_fused_optimizer_s_step(folder):
    model, ids = attach(load(folder)), torch.tensor([[1, 2, 3]])
    optimizer = torch.optim.AdamW(adapted(model).trained, lr=0.1, fused=True)
    model(ids, labels=ids).loss.backward()
    with torch.no_grad():
        before = model(ids).logits  # as a callback may ask for them
        optimizer.step()
        after = model(ids).logits
    assert torch.allclose(after, model(ids).logits, atol=1e-4) and not torch.equal(before, after)


@pytest.mark.parametrize("more", [{"use_dora": True}, {"lora_bias": True}], ids=str)
def test_a_lora_that_trains_more_than_its_factors_is_refused(folder, more):
    model = get_peft_model(load(folder), LoraConfig(r=4, target_modules="all-linear", **more))
    assert "is trained beside A and B" in one_line(lambda: adapted(model))


@need("trl")
def test_a_parameter_without_axes_steps_as_it_would(folder, bases, tmp_path):
    def trained(basis):
        model = attach(load(folder))
        make_trainer(model, tmp_path, [project(basis, gate="no_gate")] if basis else []).train()
        found = adapted(model)
        return found.flat(found.trained)

    basis = Basis.load(bases / "antipasto.safetensors")
    first, *others = basis.V
    plain, projected = (
        trained(None),
        trained(Basis({first: basis.V[first]}, {first: basis.S[first]}, basis.metadata)),
    )
    assert not torch.equal(plain[first], projected[first])
    assert all(torch.equal(plain[name], projected[name]) for name in others)


@need("trl")
def test_axes_are_renewed_at_every_nth_step_and_a_resumed_run_has_its_own(folder, pairs, tmp_path):
    """Two steps and two more from the checkpoint are the four steps of one run, to the bit."""

    def run(out, steps, resume=None):
        callback = project(pairs=pairs, refresh=2, k=2)
        model = attach(load(folder))
        settings = {"max_steps": steps, "save_strategy": "steps", "save_steps": 1, "learning_rate": 0.01}
        trainer = make_trainer(model, out, [callback], **settings)
        axes = []
        renew = callback._use
        callback._use = lambda basis: (renew(basis), axes.append(trainer.state.global_step))[0]
        trainer.train(resume_from_checkpoint=resume)
        found = adapted(model)
        return found.flat(found.trained), axes, callback.axes

    whole, renewed, axes = run(tmp_path / "whole", 4)
    assert renewed == [0, 1, 3]  # at the start, and before the updates of steps 2 and 4
    run(tmp_path / "parts", 3)
    again, renewed, same = run(tmp_path / "parts", 4, str(tmp_path / "parts" / "checkpoint-3"))
    assert renewed == [3, 3]
    for name in whole:
        assert torch.equal(whole[name], again[name]) and torch.equal(axes[name], same[name])
    (tmp_path / "parts" / "checkpoint-3" / "projection.safetensors").unlink()
    resumed = str(tmp_path / "parts" / "checkpoint-3")
    assert "checkpoint-3" in one_line(lambda: run(tmp_path / "parts", 4, resumed))


@need("trl")
def test_trackers_get_the_columns(folder, bases, tmp_path):
    """A tracker stands before the callbacks of the user, and must see them all the same."""
    from transformers import TrainerCallback

    class Tracker(TrainerCallback):
        def __init__(self):
            self.logs = []

        def on_log(self, args, state, control, logs=None, **kwargs):
            self.logs.append(dict(logs))

    tracker = Tracker()
    basis = Basis.load(bases / "antipasto.safetensors")
    trainer = make_trainer(attach(load(folder)), tmp_path, [tracker, project(basis)])
    trainer.train()
    assert {"cin", "cout", "fired", "reward"} <= tracker.logs[0].keys()
    assert "cin" not in tracker.logs[-1]  # the summary


def test_what_was_attached_is_exported_as_a_lora_and_as_a_checkpoint(folder, tmp_path):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from projected_grpo.antipasto import export

    model = attach(load(folder))
    ids = torch.tensor([[1, 3, 4, 2, 8, 9]])
    with torch.no_grad():
        assert torch.equal(model(ids).logits, load(folder)(ids).logits)  # at zero it is the model
        for number, p in enumerate(adapted(model).trained):
            p.copy_(0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(number)))
        wanted = model(ids).logits
    torch.testing.assert_close(model(ids).logits, wanted, rtol=1e-4, atol=1e-4)  # as it trains
    export(model, tmp_path / "merged", merged=True)
    export(model, tmp_path / "lora")
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    assert type(plain.model.layers[0].mlp.up_proj) is torch.nn.Linear
    for again in (plain, PeftModel.from_pretrained(load(folder), tmp_path / "lora")):
        torch.testing.assert_close(again(ids).logits, wanted, rtol=1e-4, atol=1e-4)


def test_the_command_names_what_it_cannot_read(folder, pairs, tmp_path, capsys):
    (tmp_path / "no model").mkdir()
    write_json(tmp_path / "no model" / "config.json", {"model_type": "unheard-of"})
    for spoiled in ("no template", "cut off"):
        shutil.copytree(folder, tmp_path / spoiled)
    (tmp_path / "no template" / "chat_template.jinja").unlink()
    with open(tmp_path / "cut off" / "model.safetensors", "r+b") as file:
        file.truncate(1000)
    (tmp_path / "folder.safetensors").mkdir()
    (tmp_path / "file").touch()
    for words in (
        [tmp_path / "no model", pairs, tmp_path / "b.safetensors"],
        [tmp_path / "no template", pairs, tmp_path / "b.safetensors"],
        [tmp_path / "cut off", pairs, tmp_path / "b.safetensors"],
        [folder, tmp_path / "none.yaml", tmp_path / "b.safetensors"],
        [folder, pairs, tmp_path / "b.txt"],
        [folder, pairs, tmp_path / "b.safetensors", "--top-k", "0"],
        [folder, pairs, tmp_path / "b.safetensors", "--rank", "8"],  # without --adapter lora
        [folder, pairs, tmp_path / "b.safetensors", "--tau", "nan"],
        [folder, pairs, tmp_path / "b.safetensors", "--adapter", "lora", "--alpha", "nan"],
        [folder, pairs, folder / "model.safetensors"],  # its own weights
        [folder, pairs, f"{folder}.safetensors", "--adapter", "lora"],  # a LoRA into the model's folder
        [folder, pairs, tmp_path / "folder.safetensors"],
        [folder, pairs, tmp_path / "file.safetensors", "--adapter", "lora"],
    ):
        assert main(["basis", *map(str, words)]) == 2
        said = capsys.readouterr().err.strip().splitlines()
        assert len([line for line in said if "Loading weights" not in line]) == 1


def test_random_axes_are_orthonormal_and_those_of_their_seed(folder, pairs, tmp_path):
    bases = []
    for seed in (7, 7, 8):
        out = str(tmp_path / "r.safetensors")
        words = ["basis", str(folder), str(pairs), out, "--control", "random", "--seed", str(seed)]
        assert main(words) == 0
        bases.append(Basis.load(out).V)
    first, same, other = bases
    for name, V in first.items():
        assert torch.equal(V, same[name]) and not torch.allclose(V, other[name])
        torch.testing.assert_close(V @ V.T, torch.eye(len(V)), rtol=0, atol=1e-5)
