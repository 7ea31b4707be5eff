"""A sampler over vLLM, in this process or on a server, by token ids in both."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_samplers() -> Iterable[Lazy]:
    """Register the sampler; vLLM, or the client of its server, is imported when it is first asked."""
    yield Lazy(
        "vllm",
        "callwright_plugins.vllm_sampler.sampler:VLLMSampler",
        summary="vLLM in this process or on a server: exact token ids, several turns, structured outputs",
        extra="vllm",
        reaches="callwright_plugins.vllm_sampler.sampler:reaches",
        takes="callwright_plugins.vllm_sampler.options:VLLMSamplerOptions",
    )
