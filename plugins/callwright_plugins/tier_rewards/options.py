"""The options of TIER's rewards."""

from __future__ import annotations

from pydantic import Field

from callwright.options import OptionTable


class PenaltyOptions(OptionTable):
    """Options of the components ``parameters`` and ``types``, and of the recipes ``tier`` and its kin."""

    penalty: float = Field(default=0.25, ge=0, description="lambda_p: taken off for each wrong parameter or type.")
