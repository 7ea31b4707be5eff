"""What OpenRLHF logs: event files while they are written, steps of their scalars, and what is said without any."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.training.run_folder import Run
from callwright_plugins.openrlhf_trainer.following.events import (
    EventReader,
    Scalar,
    frames,
    masked_crc,
    scalars,
    shortest,
)
from callwright_plugins.openrlhf_trainer.following.metrics import Finished, Steps, metrics_row
from callwright_plugins.openrlhf_trainer.following.start import Following
from callwright_plugins.openrlhf_trainer.options import Options
from callwright_plugins.openrlhf_trainer.trainer import OpenRLHFTrainer
from callwright_plugins.openrlhf_trainer.translation.translating import Files

#: A whole file of ``torch.utils.tensorboard.SummaryWriter`` (torch 2.13, tensorboard 2.21), which
#: was told ``add_scalar("train/kl", nan, 300)`` and ``add_scalar("eval/eval_depth 1_pass1", 1e-06, 3)``.
WRITTEN = bytes.fromhex(
    "4800000000000000fe92489d0920b1721947c2da411a0d627261696e2e4576656e743a32522e0a2c74656e736f72626f6172"
    "642e73756d6d6172792e7772697465722e6576656e745f66696c655f777269746572d45c3d7d1f00000000000000514b4418"
    "0933bc721947c2da4110ac022a110a0f0a08747261696e2f6b6c150000c07f14ead89c2d000000000000003c418afb09a4bc"
    "721947c2da4110032a200a1e0a176576616c2f6576616c5f646570746820315f706173733115bd378635496b78b3"
)


def frame(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked_crc(length)) + event + struct.pack("<I", masked_crc(event))


def scalar(step: int, tag: str, value: float) -> bytes:
    """A frame with one scalar, for steps below 128."""
    name = tag.encode()
    one = bytes([10, len(name)]) + name + bytes([21]) + struct.pack("<f", value)
    summary = bytes([10, len(one)]) + one
    return frame(bytes([16, step, 42, len(summary)]) + summary)


def step_of(step: int, last: str = "timing/step_total", **figures: float) -> bytes:
    return b"".join(scalar(step, f"train/{name}", value) for name, value in {**figures, last: 1.0}.items())


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_file_of_tensorboards_own_writer() -> None:
    found = [one for event, _ in frames(WRITTEN) for one in scalars(event)]
    assert [(one.step, one.tag) for one in found] == [(300, "train/kl"), (3, "eval/eval_depth 1_pass1")]
    assert math.isnan(found[0].value)
    assert found[1].value == 1e-6
    assert [end for _, end in frames(WRITTEN)][-1] == len(WRITTEN)


def test_the_checksum_is_that_of_rfc_3720() -> None:
    """Appendix B.4: the CRC-32C of 32 zeros, of 32 ones, and of the numbers from 0 on."""
    for data, crc in ((bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E)):
        assert masked_crc(data) == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_file_that_grows_gives_each_scalar_once(size: int, tmp_path: Path) -> None:
    data = step_of(1, loss=0.5, kl=0.1) + step_of(2, loss=0.25)
    reader, found = EventReader(tmp_path), []
    path = tmp_path / "ppo" / "events.out.tfevents.1.node.7.0"
    path.parent.mkdir()
    assert not reader.seen
    for at in range(0, len(data), size):
        with path.open("ab") as file:
            file.write(data[at : at + size])
        found += reader.read()
    assert found == [
        Scalar(1, "train/loss", 0.5), Scalar(1, "train/kl", 0.1), Scalar(1, "train/timing/step_total", 1.0),
        Scalar(2, "train/loss", 0.25), Scalar(2, "train/timing/step_total", 1.0),
    ]  # fmt: skip
    assert reader.seen
    assert reader.unread == {}
    assert EventReader(tmp_path).read() == []  # those of an earlier start


@pytest.mark.parametrize("at", [3, 9, 20, -2])
def test_a_damaged_frame_is_not_taken_nor_what_is_behind_it(at: int, tmp_path: Path) -> None:
    reader = EventReader(tmp_path)
    first, second = scalar(1, "train/loss", 0.5), scalar(2, "train/loss", 0.5)
    damaged = bytearray(second)
    damaged[at] ^= 0x10
    path = tmp_path / "events.out.tfevents.1.node.7.0"
    path.write_bytes(first + bytes(damaged) + scalar(3, "train/loss", 0.5))
    assert [one.step for one in reader.read()] == [1]
    assert reader.unread == {path: len(first)}
    path.write_bytes(first + second + scalar(3, "train/loss", 0.5))  # a shared file system that has caught up
    assert [one.step for one in reader.read()] == [2, 3]
    assert reader.unread == {}


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_bytes_raise(data: bytes, cut: int) -> None:
    list(frames(data))
    list(scalars(data))
    event = next(frames(scalar(5, "train/loss", 0.5)))[0]
    list(scalars(event[:cut]))
    list(scalars(event[:cut] + data))


@given(st.floats(width=32))
def test_numbers_are_those_of_single_precision(value: float) -> None:
    packed = struct.pack("<f", value)
    found = shortest(packed)
    assert (math.isnan(found) and math.isnan(value)) or struct.pack("<f", found) == packed
    assert len(repr(found)) <= len(repr(value))


# Steps ----------------------------------------------------------------------------------------------------------------


def over(steps: Steps, *found: tuple[int, str, float]) -> list[Finished]:
    return list(steps.over(Scalar(*one) for one in found))


def test_a_step_is_over_with_its_last_figure_or_when_another_begins() -> None:
    steps = Steps()
    assert over(steps, (1, "train/kl", math.nan), (1, "train/policy_loss", 0.5)) == []
    whole = Finished(1, {"kl": None, "policy_loss": 0.5, "timing/step_total": 9.0})
    assert over(steps, (1, "train/timing/step_total", 9.0)) == [whole]
    assert over(steps, (1, "train/dynamic_filtering_pass_rate", 0.5), (1, "other/x", 1.0)) == []
    assert over(steps, (1, "eval/eval_num_samples", 4.0)) == [Finished(1, {"eval_num_samples": 4.0}, evaluation=True)]
    assert over(steps, (2, "train/kl", 0.0), (3, "train/kl", 0.1)) == [Finished(2, {"kl": 0.0})]
    assert list(steps.rest()) == [Finished(3, {"kl": 0.1})]
    assert list(steps.rest()) == []
    filtered = Steps(filtered=True)
    assert over(filtered, (1, "train/timing/step_total", 9.0)) == []
    assert over(filtered, (1, "train/dynamic_filtering_pass_rate", 0.5))[0].figures["timing/step_total"] == 9.0


def test_a_step_as_a_row() -> None:
    figures = {
        "policy_loss": -0.5, "kl": None, "actor_lr": 1e-06, "rollout/num_samples": 4.0, "rollout/reward_mean": 0.25,
        "callwright/masked": 0.25, "callwright/answered": 0.5, "callwright/tokens": 9.0, "callwright/thoughts": 0.5,
        "callwright/thought_words": 6.0, "callwright/scores/format": 0.75,
    }  # fmt: skip
    assert metrics_row(Finished(12, figures)) == {
        "step": 12, "reward": 0.25, "loss": -0.5, "learning_rate": 1e-6, "scores": {"format": 1.0},
        "answered": 0.5 / 0.75, "thought_words": 12.0, "length": 9.0, "rollouts": 4, "masked": 1, "tokens": 36,
        "retried": 0,
        "openrlhf": {"rollout/num_samples": 4.0},
    }  # fmt: skip


# Following ------------------------------------------------------------------------------------------------------------


class Heard:
    """A reporter that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def start(self, stage: str, total: int, done: int = 0) -> None:
        pass

    def advance(self, units: int = 1, **figures: float) -> None:
        pass

    def finish(self) -> None:
        pass


def recipe_text(model: Path) -> str:
    return (
        f'name = "sums"\nseed = 3\nmodel = "{model}"\ntrainer = "openrlhf"\n'
        '[corpus]\nname = "toolworld-mini-v1"\ntrain_size = 6\nevaluation_size = 1\n'
    )


@pytest.fixture
def following(tmp_path: Path, model: Path, make_pipeline: Any) -> Following:
    trainer = OpenRLHFTrainer(steps=9, prompts=1, group=1)
    run = Run.create(tmp_path / "run", recipe_text=recipe_text(model), manifest={})
    (run.path / "openrlhf").mkdir()
    made = Following(trainer.options, make_pipeline(recipe_text(model)), run, Files(run.path), Heard())
    made._take_up()
    return made


@pytest.mark.parametrize("last", [False, True])
def test_a_step_that_was_not_logged_to_its_end_counts_only_after_an_end_in_good_order(
    last: bool, following: Following
) -> None:
    following.files.events.mkdir()
    path = following.files.events / "events.out.tfevents.1.node.7.0"
    path.write_bytes(step_of(1, policy_loss=0.5) + scalar(2, "train/policy_loss", 0.25))
    following._read_on(last=last)
    assert [(row["step"], row["loss"]) for row in following.run.rows("metrics.jsonl")] == [(1, 0.5), (2, 0.25)][
        : 1 + last
    ]


def test_a_run_without_events_says_so(tmp_path: Path, model: Path, make_pipeline: Any, stand_in: str) -> None:
    text, heard = recipe_text(model), Heard()
    run = Run.create(tmp_path / "run", recipe_text=text, manifest={})
    trainer = OpenRLHFTrainer(
        python=stand_in, environment={"STAND_IN": "silent"}, steps=1, prompts=1, group=2, max_prompt_tokens=9000,
        max_new_tokens=6000, evaluation_tasks=1, evaluate_before=False,
    )  # fmt: skip
    (tmp_path / "nowhere").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        trainer.train(make_pipeline(text), run, reporter=heard)
    assert not (run.path / "metrics.jsonl").exists() or run.rows("metrics.jsonl") == []
    (said,) = [one for one in heard.said if one.startswith("warning: OpenRLHF trained, and ")]
    assert f"{run.path / 'openrlhf' / 'events'} has no file of this start: metrics.jsonl lacks steps" in said


def test_a_damaged_file_is_named(following: Following) -> None:
    following.files.events.mkdir()
    path = following.files.events / "events.out.tfevents.1.node.7.0"
    path.write_bytes(step_of(1, policy_loss=0.5) + b"nothing that is a frame")
    following._read_on()
    assert following._nothing_logged() == f"{path} is damaged at byte {len(step_of(1, policy_loss=0.5))}"


@pytest.mark.parametrize("word", ["--logger.tensorboard_dir", "--logger.logging_steps=5"])
def test_flags_that_rows_are_made_of_are_refused(word: str) -> None:
    with pytest.raises(cw.UsageError, match=f"flags has {word}, but metrics.jsonl is made of what OpenRLHF logs"):
        OpenRLHFTrainer(flags=[word, "x"])
    assert Options(flags=["--logger.wandb.project", "mine"]).flags


def test_the_arguments_name_the_folder(model: Path, make_pipeline: Any) -> None:
    files = Files(Path("RUN"))
    argv = OpenRLHFTrainer()._translate(make_pipeline(recipe_text(model)), files).argv
    assert argv[argv.index("--logger.tensorboard_dir") + 1] == str(files.events)
    assert json.dumps(str(files.events)) in json.dumps(files.described(Options()))
