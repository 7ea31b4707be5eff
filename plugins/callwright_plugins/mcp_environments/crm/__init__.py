"""Customer relations: leads, contacts, deals through the stages of pipelines, activities.

The rules of this world:

- An email address belongs to at most one contact, whatever its case, and to at most one open lead. A lead whose address
  is a contact's cannot be created.
- Converting a lead makes a contact of it, or takes the contact that has its address; it finds or makes the
  organisation, and opens a deal unless told not to. Its activities go with it. It happens once.
- Deals move through the open stages of their pipeline one at a time, and back as far as one likes. They are won from
  the last open stage, and lost from any. A closed deal does not move.
- A stage may require facts of the deal (amount, closing day, next step, decision maker, a reason for losing it) or that
  a call or a meeting was logged.
- Sales people convert and move what is theirs, or nobody's; managers everything.
- Logging something with a new lead makes it a working one. Activities lie in the past.
- Merging two contacts moves deals, leads, activities and addresses to the one that is kept, and fills its gaps.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person")
