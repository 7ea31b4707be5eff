"""What training data and benchmarks have in common: ids, prompts, schemas of tools and gold calls."""

from __future__ import annotations

from typing import Final

#: Kinds of overlap. ``near`` leaves out what is equal; ``words`` is a shared run of thirteen words (Brown et al. 2020).
KINDS: Final = ("id", "prompt", "near", "words", "schema", "calls")
#: The kinds that make training data contaminated. Tools and single calls are often shared on purpose.
CONTAMINATED: Final = ("id", "prompt", "near")
