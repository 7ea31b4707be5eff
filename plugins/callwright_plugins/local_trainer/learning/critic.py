"""The critic: a second model that says before each token what the rest of the sequence will earn."""

from __future__ import annotations

import copy
from typing import Any

import torch
from attrs import evolve, frozen
from torch import Tensor, nn

from callwright_plugins.local_trainer.learning.steps import adamw
from callwright_plugins.local_trainer.models.masters import to_bfloat16
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options


class ValueModel(nn.Module):
    """A copy of a language model's trunk with a head of one output, in place of the logits.

    Nothing is shared with the policy, whose updates therefore leave the values alone. The head begins at 0, and so does
    every value.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.config = model.config
        self.trunk = copy.deepcopy(model.base_model)
        width = model.config.get_text_config().hidden_size
        self.head = nn.Linear(width, 1, device=next(model.parameters()).device, dtype=torch.float32)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    @property
    def base_model(self) -> Any:
        """The trunk, under the name that language models have for theirs."""
        return self.trunk

    def forward(self, **inputs: Any) -> Values:
        """Values ``[n, L, 1]`` for the arguments of the trunk; the head computes in float32."""
        hidden = self.trunk(**inputs).last_hidden_state
        with torch.autocast(hidden.device.type, enabled=False):
            return Values(self.head(hidden.float()))


@frozen(eq=False)
class Values:
    """What a :class:`ValueModel` returns; the name is that of a language model's, whose place it takes."""

    logits: Tensor


@frozen(eq=False)
class Critic:
    """The value model, dressed as a policy for what computes over prompts and completions, and its optimiser."""

    policy: Policy
    optimiser: torch.optim.AdamW

    @property
    def model(self) -> ValueModel:
        """The value model."""
        model: ValueModel = self.policy.model
        return model


def make_critic(policy: Policy, options: Options) -> Critic:
    """A critic of the policy as it is now."""
    model = ValueModel(policy.model).eval()
    model.requires_grad_(True)
    if options.weights == "bfloat16":
        to_bfloat16(model, but="head.")
    return Critic(evolve(policy, model=model), adamw(model, options.critic.weight_decay, options.betas))
