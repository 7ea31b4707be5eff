"""International account numbers: check digits by ISO 7064 (mod 97-10), and those of this bank."""

from __future__ import annotations

from typing import Final

#: Country and bank code of this bank's account numbers.
COUNTRY: Final = "DE"
BANK: Final = "99000001"
_LENGTHS: Final = (15, 34)


def make_iban(country: str, rest: str) -> str:
    """The number with its check digits: ``DE`` and 18 digits become 22 characters."""
    return f"{country}{98 - _remainder(f'{rest}{country}00'):02d}{rest}"


def own_iban(number: int) -> str:
    """The number of this bank's account ``number``."""
    return make_iban(COUNTRY, f"{BANK}{number:010d}")


def normalised(text: str) -> str:
    """Without spaces and in capitals."""
    return "".join(text.split()).upper()


def is_iban(text: str) -> bool:
    """Whether length, alphabet and check digits of a normalised number are right."""
    low, high = _LENGTHS
    return (
        low <= len(text) <= high
        and text.isascii()
        and text.isalnum()
        and text[:2].isalpha()
        and text[2:4].isdigit()
        and _remainder(text[4:] + text[:4]) == 1
    )


def is_own(text: str) -> bool:
    """Whether a normalised number is one of this bank."""
    return text.startswith(COUNTRY) and text[4:12] == BANK


def _remainder(text: str) -> int:
    """The number that a text stands for (A is 10 … Z is 35), modulo 97."""
    return int("".join(str(int(letter, 36)) for letter in text)) % 97
