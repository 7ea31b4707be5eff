"""tau2-bench (Barres et al. 2025): its verdicts on a dialogue, over the source and the data that the user points at.

``scoring`` is what needs nothing of them: the actions, what was communicated, and the product over the basis.
``source`` asks tau2's own code, in its own interpreter, what a dialogue left in the databases.
"""

from __future__ import annotations
