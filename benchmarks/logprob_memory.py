"""The most memory that log-probabilities over a large vocabulary take, forward and backward, on the CPU.

    OMP_NUM_THREADS=1 python benchmarks/logprob_memory.py
    OMP_NUM_THREADS=1 python benchmarks/logprob_memory.py --tokens 4096 --vocabulary 32000

The unit is one float32 table [tokens, vocabulary]. Every allocation of torch is counted, by its profiler: what is live
beyond the hidden states and weights that were there before, and beyond the gradients that stay behind. "plain" is
autograd over ``logits.float().logsumexp()``, as it was done before; "logits" is for models whose logits are more than
one layer of their hidden states, of which the logits themselves are a table; "head" is for all others. Gradients are
compared with those of "plain". The exit status is 1 if one of ours takes more than 1.3 tables, or if a gradient differs
by more than 1e-6 of the largest.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from callwright_plugins.local_trainer.forward.token_logprobs import of_hidden, of_logits

MOST = 1.3
CLOSE = 1e-6
Loss = Callable[[Tensor, nn.Linear, Tensor], Tensor]


def plain(hidden: Tensor, head: nn.Linear, targets: Tensor) -> Tensor:
    """Autograd over the whole table, entropies without gradient included."""
    logits = head(hidden).float()
    normaliser = logits.logsumexp(-1)
    with torch.no_grad():
        shifted = logits.detach() - normaliser.detach().unsqueeze(1)
        shifted.exp().mul_(shifted).sum(-1).neg_()
    return logits.gather(1, targets.unsqueeze(1)).squeeze(1) - normaliser


def from_logits(hidden: Tensor, head: nn.Linear, targets: Tensor) -> Tensor:
    """Ours, of logits that the model made."""
    return of_logits(head(hidden), targets, 1.0, True)[0]


def from_head(hidden: Tensor, head: nn.Linear, targets: Tensor) -> Tensor:
    """Ours, of hidden states."""
    return of_hidden(hidden, head, targets, 1.0, True, torch.float32)[0]


def peak(work: Callable[[], object]) -> int:
    """The most bytes that were live at once beyond those before."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        work()
    live = most = 0
    for event in sorted(watched.profiler.kineto_results.events(), key=lambda one: one.start_ns()):
        if event.name() == "[memory]":
            live += event.nbytes()
            most = max(most, live)
    return most


def measure(loss: Loss, tokens: int, vocabulary: int, width: int) -> tuple[float, float, dict[str, Tensor]]:
    """Tables of memory, CPU seconds, and the gradients."""
    drawn = torch.Generator().manual_seed(0)
    hidden = torch.randn(tokens, width, generator=drawn).requires_grad_()
    head = nn.Linear(width, vocabulary, bias=False)
    with torch.no_grad():
        head.weight.copy_(torch.randn(vocabulary, width, generator=drawn) / width**0.5)
    targets = torch.randint(vocabulary, (tokens,), generator=drawn)
    weights = torch.randn(tokens, generator=drawn) / tokens

    def step() -> None:
        (loss(hidden, head, targets) * weights).sum().backward()  # type: ignore[no-untyped-call]

    began = time.process_time()
    step()
    seconds = time.process_time() - began
    hidden.grad = head.weight.grad = None
    most = peak(step)
    assert hidden.grad is not None
    assert head.weight.grad is not None
    staying = hidden.grad.nbytes + head.weight.grad.nbytes
    gradients = {"hidden": hidden.grad, "weight": head.weight.grad}
    return (most - staying) / (4 * tokens * vocabulary), seconds, gradients


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=151_936)
    parser.add_argument("--width", type=int, default=64)
    given = parser.parse_args()
    torch.set_num_threads(1)
    expected: dict[str, Tensor] = {}
    sound = True
    for name, loss in (("plain", plain), ("logits", from_logits), ("head", from_head)):
        tables, seconds, found = measure(loss, given.tokens, given.vocabulary, given.width)
        expected = expected or found
        apart = max(
            float((found[key] - gradient).abs().max() / gradient.abs().max()) for key, gradient in expected.items()
        )
        print(json.dumps({"path": name, "tables": round(tables, 2), "cpu_s": round(seconds, 2), "gradients": apart}))
        sound = sound and (name == "plain" or (tables <= MOST and apart <= CLOSE))
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
