"""A word-level tokenizer: the longest word of a vocabulary that fits, else bytes. Decoding gives back every text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD: Final = "<|pad|>"
BEGIN: Final = "<|begin|>"
END: Final = "<|end|>"
_UNUSED: Final = "<|unknown|>"  # the model class demands one; every byte is in the vocabulary, so it never appears


def build_tokenizer(words: Iterable[str]) -> Any:
    """A ``PreTrainedTokenizerFast`` over ``words`` and the 256 bytes, which saves and loads like any other.

    The text is first cut where a word fits (longest first, from the left) and into single characters elsewhere; then
    each piece is looked up in bytes, so that a character outside the vocabulary becomes its UTF-8 bytes. Text that
    looks like a special token is text.
    """
    chosen = sorted({word for word in words if len(word) > 1}, key=lambda word: (-len(word), word))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokens = [PAD, BEGIN, END, _UNUSED, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    seen = set(tokens)
    for word in sorted(chosen):
        shown = byte_level.pre_tokenize_str(word)[0][0]
        if shown not in seen:
            seen.add(shown)
            tokens.append(shown)
    pattern = "|".join([*(re.escape(word) for word in chosen), r"[\s\S]"])
    longest = max((len(word.encode("utf-8")) for word in chosen), default=4)
    tokenizer = Tokenizer(
        models.WordPiece(
            {token: index for index, token in enumerate(tokens)},
            unk_token=_UNUSED,
            continuing_subword_prefix="",
            max_input_chars_per_word=max(longest, 4),
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), behavior="isolated"), byte_level]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.encode_special_tokens = True
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BEGIN,
        eos_token=END,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,
    )
