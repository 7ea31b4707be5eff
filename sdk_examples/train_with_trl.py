"""The exact TIER objective in TRL's own trainer, in a minute on a CPU: too short to learn, long enough to see.

Run: python sdk_examples/train_with_trl.py [FOLDER]. It needs `pip install 'callwright[trl]'`. A tiny model is made and
taught the form by the local trainer; a model of yours takes its place by its name, with `form="chat"`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import callwright as cw
from callwright_plugins import trl_bridge

TAUGHT = [
    "trainer.steps=0",
    "trainer.warm_start.steps=60",
    "trainer.warm_start.batch=8",
    "trainer.warm_start.count=200",
    "trainer.evaluation_tasks=1",
]


def main(folder: Path) -> Any:
    """Teach a tiny model, then train it with TRL on single turns, then on episodes of up to three turns."""
    from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
    from transformers.utils import logging
    from trl import GRPOConfig, GRPOTrainer

    logging.disable_progress_bar()
    taught = cw.train("tier-mini", output=folder / "taught", overrides=TAUGHT).path / "checkpoints" / "final"
    data = trl_bridge.dataset("toolworld-mini-v1", form="text", limit=40)
    episodes = trl_bridge.rollout_func(
        "tier", corpus="toolworld-mini-v1", limits=cw.TurnLimits(assistant_turns=3, observation_tokens=150)
    )
    for rollout_func in (None, episodes):
        trainer = GRPOTrainer(
            AutoModelForCausalLM.from_pretrained(taught),
            trl_bridge.reward("tier", corpus="toolworld-mini-v1"),
            GRPOConfig(
                output_dir=str(folder / "trl"), loss_type="bnpo", beta=0.04,  # TIER, eq. 2.3
                num_generations=4, per_device_train_batch_size=8,
                max_completion_length=400 if rollout_func else 110,
                max_steps=2, logging_steps=1, learning_rate=3e-4, save_strategy="no", report_to=[], use_cpu=True,
                bf16=False, disable_tqdm=True,
            ),
            train_dataset=data,
            processing_class=AutoTokenizer.from_pretrained(taught),
            rollout_func=rollout_func,
        )  # fmt: skip
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        for row in trainer.state.log_history:
            if "reward" in row:
                print(f"step {row['step']}: reward {row['reward']:.3f}, format {row['tier/format']:.2f}")
    print(f"turns of an episode: {episodes.described['turns']:.1f}")
    return trainer


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/trl"))
