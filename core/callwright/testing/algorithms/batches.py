"""What algorithms are tried on: small batches in float64, and the loss of one with its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from callwright.training.algorithm import ActorCritic, Algorithm, Experience, LossOutput, TokenBatch, ValueBatch

if TYPE_CHECKING:
    from torch import Tensor


_LENGTHS: Final = (3, 7, 1, 5, 6, 2)  # active tokens lie before these; one in the middle of row 1 is the environment's
PER_TOKEN: Final = ("logprobs", "old_logprobs", "ref_logprobs", "entropy")


def sample_rewards() -> tuple[Tensor, Tensor]:
    """Rewards and validity of 3 prompts with 2 completions each, one group of equal rewards among them."""
    import torch

    return torch.tensor([[0.1, 1.0], [0.5, 0.5], [0.35, 0.3]], dtype=torch.float64), torch.ones(3, 2, dtype=torch.bool)


def sample_batch() -> TokenBatch:
    """6 sequences of up to 7 tokens; ratios between 0.95 and 1.06, so that no usual clip range cuts them."""
    import torch

    generator = torch.Generator().manual_seed(20240501)

    def noise(scale: float) -> Tensor:
        return scale * (2 * torch.rand(6, 7, generator=generator, dtype=torch.float64) - 1)

    old = -1.5 + noise(1.0)
    mask = (torch.arange(7) < torch.tensor(_LENGTHS).unsqueeze(1)).long()
    mask[1, 3] = 0
    return TokenBatch(
        logprobs=old + noise(0.05),
        old_logprobs=old,
        mask=mask,
        advantages=torch.tensor([1.2, -0.7, 0.4, -1.1, 0.9, -0.2], dtype=torch.float64),
        ref_logprobs=old + noise(0.3),
        entropy=1 + noise(0.5),
    )


def sample_experience(**changes: Any) -> Experience:
    """The batch above as it was sampled: two sequences a prompt, their scores, and what a critic would say."""
    import torch

    batch = sample_batch()
    generator = torch.Generator().manual_seed(20250317)
    experience = Experience(
        scores=torch.tensor([0.1, 1.0, 0.7, 0.2, -0.4, 0.3], dtype=torch.float64),
        groups=torch.tensor([0, 0, 1, 1, 2, 2]),
        mask=batch.mask,
        logprobs=batch.old_logprobs,
        ref_logprobs=batch.old_logprobs.clone(),
        values=0.02 * torch.rand(6, 7, generator=generator, dtype=torch.float64),
    )
    return evolve(experience, **changes)


def sample_values() -> ValueBatch:
    """Values that have moved by up to 0.1 from the old ones, towards returns that are 1 to 2 away."""
    import torch

    generator = torch.Generator().manual_seed(20250318)

    def noise() -> Tensor:
        return torch.rand(6, 7, generator=generator, dtype=torch.float64)

    old = noise()
    return ValueBatch(values=old + 0.1 * noise(), old_values=old, returns=old + 1.1 + noise(), mask=sample_batch().mask)


def row_means(values: Tensor, mask: Tensor) -> Tensor:
    """The mean of each row ``[N]`` over its active tokens."""
    return (values * mask).sum(1) / mask.sum(1)


def value_loss_of(algorithm: ActorCritic, batch: ValueBatch) -> tuple[LossOutput, Tensor]:
    """The output and the gradient of the value loss ``[N, L]`` with respect to the values."""
    values: Any = batch.values.detach().clone().requires_grad_()
    output = algorithm.value_loss(evolve(batch, values=values))
    if not output.loss.requires_grad:
        raise AssertionError("the value loss has no gradient: was it computed from detached or copied values?")
    output.loss.backward()  # type: ignore[no-untyped-call]
    return output, values.grad


def loss_of(algorithm: Algorithm, batch: TokenBatch) -> tuple[LossOutput, Tensor]:
    """The output and the gradient of the loss ``[N, L]`` with respect to the log-probabilities."""
    logprobs: Any = batch.logprobs.detach().clone().requires_grad_()
    output = algorithm.loss(evolve(batch, logprobs=logprobs))
    if not output.loss.requires_grad:
        raise AssertionError("the loss has no gradient: was it computed from detached or copied log-probabilities?")
    output.loss.backward()  # type: ignore[no-untyped-call]
    return output, logprobs.grad
