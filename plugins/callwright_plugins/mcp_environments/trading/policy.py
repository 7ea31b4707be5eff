"""The rules of a broker, as its model is told them."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule

POLICY: Final = Policy(
    "You trade at one exchange for a customer of a broker, who may have several accounts. Prices are in cents "
    "a share; orders bind.",
    (
        Rule(
            "Orders are placed and modified while the exchange is open: weekdays but holidays, 08:00 to 16:30 UTC.",
            "MARKET_CLOSED",
        ),
        Rule("In a halted symbol orders can only be cancelled.", "SYMBOL_HALTED"),
        Rule("Limit prices are multiples of the symbol's tick.", "TICK_SIZE"),
        Rule("Limit prices are within the symbol's band around the close of the day before.", "PRICE_BAND"),
        Rule("A buy reserves cash: what open orders hold is not spent twice.", "INSUFFICIENT_BUYING_POWER"),
        Rule("Nobody sells what they do not hold, or have on offer already.", "INSUFFICIENT_SHARES"),
        Rule("An order that would meet one of the same trader is refused.", "SELF_TRADE"),
        Rule("A market order needs somebody on the other side.", "NO_LIQUIDITY"),
        Rule("What a market order does not find is dropped, and the call says how much.", "PARTIAL_FILL"),
        Rule("Only open orders are modified or cancelled.", "ORDER_NOT_OPEN"),
        Rule("An alert is for a price that is still to come.", "INVALID_STATE"),
        Rule("At most 20 alerts wait at a time.", "ALERT_LIMIT"),
    ),
)
