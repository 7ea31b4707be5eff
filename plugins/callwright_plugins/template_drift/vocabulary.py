"""Looks at the tokenizer alone: its special tokens, its size, and whether texts survive it."""

from __future__ import annotations

from typing import Final

from callwright_plugins.template_drift.examined import CALL, LENGTH, SEQUENCES, THOUGHT, Examined
from callwright_plugins.template_drift.seen import Seen

_TEXTS: Final = (
    f"<think>\n{THOUGHT}\n</think>\n\n{CALL}",
    '{"0": {"find": {"names": ["a  b", " c", "é", "漢字", "🙂"], "n": [1, -2.50, null, true]}}}',
    "Line one\n\n  indented\ttabbed\n\nDon't  collapse   spaces , or  move commas .",
)


def no_pad_token(of: Examined) -> Seen | None:
    """There is nothing to pad with."""
    return Seen("the tokenizer has no pad token") if of.tokenizer.pad_token_id is None else None


def pad_is_end(of: Examined) -> Seen | None:
    """Padding and the end of a text are one token."""
    pad = of.tokenizer.pad_token_id
    if pad is None or pad != of.tokenizer.eos_token_id:
        return None
    return Seen(f"the pad token is the end token, {of.token(pad)!r}")


def vocabulary_too_large(of: Examined) -> Seen | None:
    """There are ids that the model has no embedding of."""
    if of.vocabulary is None or len(of.tokenizer) <= of.vocabulary:
        return None
    return Seen(f"the tokenizer has {len(of.tokenizer)} ids, the model {of.vocabulary} embeddings")


def text_not_kept(of: Examined) -> Seen | None:
    """A text is not what it was after it was encoded and decoded."""
    for text in _TEXTS:
        back = of.codec.text(of.encode(text))
        if back != text:
            at = next((i for i, (a, b) in enumerate(zip(text, back, strict=False)) if a != b), len(back))
            return Seen(
                f"decoding does not give back what was encoded: {text[at : at + 20]!r} is {back[at : at + 20]!r}"
            )
    return None


def retokenisation(of: Examined) -> Seen | None:
    """Ids are not what they were after they were decoded and encoded."""
    if not of.retokenised:
        return None
    return Seen(
        f"{of.retokenised} of {SEQUENCES} random sequences of {LENGTH} ids become other ids when their text is "
        "tokenised again"
    )


def no_end_token(of: Examined) -> Seen | None:
    """Sampling stops nowhere."""
    return None if of.ends else Seen("neither the tokenizer nor the generation config names an end token")


def no_template(of: Examined) -> Seen | None:
    """There is no chat template, and the model needs one."""
    return None if of.templated or of.compact else Seen("the tokenizer has no chat template")


def control_as_text(of: Examined) -> Seen | None:
    """What the template writes as control tokens reaches the model as characters."""
    own = of.tokenizer.eos_token_id
    if own is None or of.encode(of.token(own)) == [own]:
        return None
    return Seen(f"the tokenizer does not encode {of.token(own)!r} as the end token but as text")
