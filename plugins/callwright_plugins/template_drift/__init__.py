"""Template drift: whether a tokenizer and its chat template say the same of a conversation, turn by turn.

Rollouts keep token ids, so nothing here makes them inconsistent by itself. But a template that ends turns with a token
that nobody stops at, or that opens no turn for the model, makes training wrong; and one that rewrites earlier turns
shows a served model other contexts than it was trained in. ``callwright doctor --model DIR`` finds out without the
model. Read ``checks.py`` first: a table of everything that is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_model_checks() -> Iterable[Lazy]:
    """The check of tokenizers and chat templates."""
    yield Lazy(
        "template-drift",
        "callwright_plugins.template_drift.model_folder:TemplateDrift",
        "whether a tokenizer and its chat template are fit for training",
        extra="train",
    )
