"""Loaders in other people's training loops, unmodified: two epochs, and a resume in the middle that sees every sample once."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import forebay as fb  # noqa: E402
from forebay.torch import DataLoader  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.parametrize("kind", ["Loader", "DataLoader"])]

COUNT, SIZE = 40, 4
EPOCHS = 2
STOP = 13  # In the middle of the second epoch.


class Values(torch.utils.data.Dataset):  # type: ignore[misc,name-defined]
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, at: int) -> dict[str, float]:
        return {"value": float(at)}


def make(kind: str) -> Any:
    if kind == "Loader":
        graph = fb.range(COUNT).shuffle(10).batch(SIZE)
        return graph.loader(num_workers=1, seed=3, epochs=EPOCHS, output="torch")
    return DataLoader(Values(), batch_size=SIZE, shuffle=True, generator=torch.Generator().manual_seed(3))


def whole(kind: str) -> list[list[float]]:
    loader = make(kind)
    return [batch["value"].tolist() for _ in range(EPOCHS) for batch in loader]


def model() -> Any:
    return torch.nn.Linear(1, 1)


def test_a_plain_loop_with_its_checkpoint_in_a_file(kind: str, tmp_path: Path) -> None:
    loader, seen = make(kind), []
    for batch in loader:
        seen.append(batch["value"].tolist())
    for batch in loader:
        seen.append(batch["value"].tolist())
        if len(seen) == STOP:
            torch.save({"data": loader.state_dict()}, tmp_path / "a.pt")
            break
    loader = make(kind)
    loader.load_state_dict(torch.load(tmp_path / "a.pt")["data"])
    seen += [batch["value"].tolist() for batch in loader]
    assert seen == whole(kind)


def test_lightning(kind: str, tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self, stop: int | None) -> None:
            super().__init__()
            self.inner, self.stop = model(), stop
            self.seen: list[Any] = []

        def training_step(self, batch: Any, at: int) -> Any:
            self.seen.append(batch["value"].tolist())
            if len(self.seen) == self.stop:
                self.trainer.save_checkpoint(tmp_path / "a.ckpt")
                self.trainer.should_stop = True
                self.trainer.fit_loop.epoch_loop.max_steps = self.stop
            return self.inner(batch["value"].float().reshape(-1, 1)).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.01)

    settings: dict[str, Any] = {
        "max_epochs": EPOCHS,
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "default_root_dir": tmp_path,
    }
    truth = Module(None)
    lightning.Trainer(**settings).fit(truth, make(kind))
    first = Module(STOP)
    lightning.Trainer(**settings).fit(first, make(kind))
    state = torch.load(tmp_path / "a.ckpt", weights_only=False)
    assert state["loops"], "the loops are in the checkpoint"
    second = Module(None)
    lightning.Trainer(**settings).fit(second, make(kind), ckpt_path=tmp_path / "a.ckpt", weights_only=False)
    assert len(truth.seen) == EPOCHS * COUNT // SIZE and first.seen[:STOP] + second.seen == truth.seen


def test_accelerate(kind: str, tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True)
    loader = accelerator.prepare(make(kind))
    inner, optimizer = accelerator.prepare(net := model(), torch.optim.SGD(net.parameters(), 0.01))
    accelerator.register_for_checkpointing(loader)
    seen: list[list[float]] = []
    for _ in range(EPOCHS):
        for batch in loader:
            seen.append(batch["value"].tolist())
            accelerator.backward(inner(batch["value"].float().reshape(-1, 1)).mean())
            optimizer.step()
            if len(seen) == STOP:
                accelerator.save_state(str(tmp_path))
                break
    again = accelerate.Accelerator(cpu=True)
    loader = again.prepare(make(kind))
    again.register_for_checkpointing(loader)
    again.load_state(str(tmp_path))
    seen = seen[:STOP] + [batch["value"].tolist() for batch in loader]
    assert seen == whole(kind)


def test_transformers(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from forebay.hf import TrainerMixin

    class Net(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = model()
            self.seen: list[Any] = []

        def forward(self, value: Any) -> Any:
            self.seen.append(value.tolist())
            return {"loss": self.inner(value.float().reshape(-1, 1)).mean()}

    class Trainer(TrainerMixin, transformers.Trainer):  # type: ignore[misc,name-defined]
        pass

    def trainer(steps: int) -> Any:
        settings = transformers.TrainingArguments(
            output_dir=str(tmp_path),
            num_train_epochs=EPOCHS,
            max_steps=steps,
            save_steps=STOP,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
        )
        return Trainer(model=Net(), args=settings, train_loader=make(kind))

    truth = trainer(EPOCHS * COUNT // SIZE)
    truth.train()
    first = trainer(STOP)
    first.train()
    second = trainer(EPOCHS * COUNT // SIZE)
    second.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{STOP}"))
    assert first.model.seen + second.model.seen == truth.model.seen


DEEPSPEED = """
import json, sys
import deepspeed, torch
sys.path.insert(0, sys.argv[2])
import test_frameworks as t
how, tests, folder, kind = sys.argv[1:]
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # It would be compiled now, with ninja.
net = t.model()
settings = {"train_micro_batch_size_per_gpu": t.SIZE, "gradient_accumulation_steps": 1}
engine, *_ = deepspeed.initialize(model=net, optimizer=torch.optim.SGD(net.parameters(), 0.01), config=settings)
loader = t.make(kind)
if how == "resume":
    _, kept = engine.load_checkpoint(folder)
    loader.load_state_dict(kept["data"])
seen = []
while engine.global_steps < t.EPOCHS * t.COUNT // t.SIZE:
    for batch in loader:
        seen.append(batch["value"].tolist())
        engine.backward(engine(batch["value"].float().reshape(-1, 1)).mean())
        engine.step()
        if how == "stop" and engine.global_steps == t.STOP:
            engine.save_checkpoint(folder, client_state={"data": loader.state_dict()})
            break
    if how == "stop" and engine.global_steps == t.STOP:
        break
print(json.dumps(seen))
torch.distributed.destroy_process_group()
"""


def torchrun(script: Path, ranks: int, *args: str) -> Any:
    """What the script prints in its last line, as JSON."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", str(script)]
    done = subprocess.run([*command, *args], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_deepspeed(kind: str, tmp_path: Path) -> None:
    if util.find_spec("deepspeed") is None:
        pytest.skip("deepspeed is not installed")
    script = tmp_path / "train.py"
    script.write_text(DEEPSPEED)
    tests, folder = str(Path(__file__).parent), str(tmp_path / "kept")
    first = torchrun(script, 1, "stop", tests, folder, kind)
    rest = torchrun(script, 1, "resume", tests, folder, kind)
    assert len(first) == STOP and first + rest == whole(kind)


SCRIPT = """
import json, sys
import torch, torch.distributed
import forebay as fb
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
graph = fb.range(40).shuffle(10).batch(4, True)
loader = graph.loader(num_workers=1, seed=3, ranks="env", epochs=2, output="torch")
state = json.load(open(sys.argv[2])) if sys.argv[1] == "resume" else None
if state:
    loader.load_state_dict(state)
seen = []
for epoch in loader.epochs():
    for step, batch in enumerate(epoch, start=epoch.start):
        seen.append(batch["value"].tolist())
        if sys.argv[1] == "stop" and (epoch.epoch, step) == (1, 2):
            if rank == 0:
                json.dump(loader.state_dict(), open(sys.argv[2], "w"))
            break
    torch.distributed.barrier()
every = [None] * torch.distributed.get_world_size()
torch.distributed.all_gather_object(every, seen)
if rank == 0:
    print(json.dumps(every))
torch.distributed.destroy_process_group()
"""


def test_torchrun_with_two_ranks(kind: str, tmp_path: Path) -> None:
    if kind == "DataLoader":
        pytest.skip("its ranks are those of the sampler that it is given")
    script, state = tmp_path / "train.py", tmp_path / "state.json"
    script.write_text(SCRIPT)

    truth, first, rest = (torchrun(script, 2, how, str(state)) for how in ("whole", "stop", "resume"))
    assert [a + b for a, b in zip(first, rest, strict=True)] == truth
    for epoch in (slice(0, 5), slice(5, 10)):
        values = [value for rank in truth for batch in rank[epoch] for value in batch]
        assert sorted(values) == list(range(40)), "each sample once in each epoch"
