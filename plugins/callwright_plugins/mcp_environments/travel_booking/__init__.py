"""A travel agency as one customer sees it: flights, fares, seats, hotels, and points.

- A flight has fares of four classes, each with seats of its own and a price that rises as seats go and the day of
  departure comes near. To book, first hold seats at the price that was quoted; a hold keeps seats and price for thirty
  minutes. A price that is no longer true is FARE_CHANGED.
- A booking is for several travellers, at least one of them an adult. On a flight to another country each needs a
  passport that is valid on arrival. Nobody is on two flights at once.
- The rules of the fare say what changing and cancelling cost. Within 24 hours of booking both are free if the flight
  leaves in at least seven days, and always if the airline cancels the flight. Else the fee that get_fare_rules tells
  must be accepted, and the cheapest fare is not refundable at all.
- Seats are chosen on a map by cabin; exit rows are not for children. Some fares pay for a seat, all for more legroom.
- Hotels sell rooms by the night, with a rate, a stock and a shortest stay for each night. Nights of a booking that are
  kept keep their rate when it is modified. After the deadline the first night is not refunded.
- Points are worth a cent each. Those earned with a booking can be used once its journey has begun (flights) or ended
  (hotels), and are lost when it is cancelled. Points earned in a year make silver and gold members, who earn more.
- Times are UTC. Passport numbers are never shown.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person", "charges", "events")
