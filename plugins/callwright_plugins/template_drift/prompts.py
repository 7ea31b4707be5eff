"""Looks at the prompt: how a conversation begins, and what asks for an answer."""

from __future__ import annotations

from callwright_plugins.template_drift.examined import Examined
from callwright_plugins.template_drift.seen import Seen

# The beginning of a conversation --------------------------------------------------------------------------------------


def template_fails(of: Examined) -> Seen | None:
    """Not even a message of the user can be rendered."""
    if of.opening.messages is not None:
        return None
    return Seen(f"the template cannot render a message of the user: {of.opening.failure}")


def no_system_role(of: Examined) -> Seen | None:
    """The message of the system is refused or, which is worse, dropped without a word."""
    if of.opening.system == "shown":
        return None
    return Seen(
        "the template refuses or leaves out the message of the system",
        severity="error" if of.opening.system == "dropped" else None,
    )


def two_begin_tokens(of: Examined) -> Seen | None:
    """Template and tokenizer both write the token that begins a text."""
    begin, added, written = _begin(of)
    if not (added and written):
        return None
    return Seen(f"the template writes {begin!r}, and so does the tokenizer by itself")


def no_begin_token(of: Examined) -> Seen | None:
    """The tokenizer begins every text with a token that the template leaves out."""
    begin, added, written = _begin(of)
    if not added or written:
        return None
    return Seen(f"the tokenizer puts {begin!r} before a text, but the template does not write it")


def _begin(of: Examined) -> tuple[str | None, bool, bool]:
    """The token that begins a text, whether the tokenizer adds it by itself, and whether the template writes it."""
    begin, text = of.tokenizer.bos_token, of.render(of.first).text
    if begin is None or text is None:
        return begin, False, False
    return begin, list(of.tokenizer.encode("x"))[:1] == [of.tokenizer.bos_token_id], text.startswith(begin)


# The generation prompt ------------------------------------------------------------------------------------------------


def other_generation_prompt(of: Examined) -> Seen | None:
    """Another text stands before an answer than the one that asks for it."""
    asked = of.generation
    if asked is None or asked.alike:
        return None
    return Seen(
        f"the generation prompt is {asked.prompt!r}, but {asked.before[len(asked.shared) :]!r} stands before an "
        "assistant's text"
    )


def short_generation_prompt(of: Examined) -> Seen | None:
    """The generation prompt is only the beginning of what stands before an answer."""
    asked = of.generation
    if asked is None or not asked.alike or not asked.prompt or not asked.left.strip() or "</think>" in asked.left:
        return None
    return Seen(
        f"the template puts {asked.left!r} before an assistant's text, and the generation prompt ends before it"
    )


def empty_thought(of: Examined) -> Seen | None:
    """The template adds a thought to an answer that has none."""
    if not _puts_a_thought(of):
        return None
    assert of.generation is not None
    return Seen(f"the template puts {of.generation.left!r} before the text of an answer without a thought")


def no_generation_prompt(of: Examined) -> Seen | None:
    """Nothing opens the assistant's turn."""
    asked = of.generation
    if asked is None or not asked.alike or asked.prompt or not asked.left.strip() or _puts_a_thought(of):
        return None
    return Seen(
        f"the template puts {asked.left!r} before an assistant's text, but the generation prompt does not have it"
    )


def _puts_a_thought(of: Examined) -> bool:
    asked = of.generation
    return asked is not None and asked.alike and "</think>" in asked.left and not of.codec.prefix_text


def open_thought(of: Examined) -> Seen | None:
    """The generation prompt begins the thought of a completion."""
    if of.generation is None or not of.codec.prefix_text:
        return None
    return Seen(f"the generation prompt ends with {of.codec.prefix_text!r}: completions begin inside of a thought")


def closed_thought(of: Examined) -> Seen | None:
    """The generation prompt ends the thought of a completion before it began."""
    if of.generation is None or of.codec.prefix_text or "<think>" not in of.generation.prompt:
        return None
    return Seen(f"the generation prompt ends with a thought that is already closed: {of.generation.prompt!r}")
