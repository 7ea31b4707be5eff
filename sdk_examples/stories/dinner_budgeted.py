"""Dinner is ordered, comes, and is entered in the household's budget. Two apps.

Run: python sdk_examples/stories/dinner_budgeted.py
"""

from telling import Agent, Story, ask, tell

from callwright.environments import ClockPolicy

MINUTE = 60
GOAL = {
    "holds": [
        {"table": "food_delivery.orders", "where": {"restaurant_id": "R00033", "payment": "card"}, "count": 1},
        {"table": "budget.expenses", "where": {"category_id": "G00003", "description": "Royal Oven"}, "count": 1},
    ],
    "changed": [
        {"table": "food_delivery.order_items"},
        {"table": "food_delivery.courier_events"},
        {"table": "food_delivery.profile", "fields": ["card_available_cents"]},
        {"table": "food_delivery.baskets", "must": False},
        {"table": "food_delivery.basket_items", "must": False},
        {"table": "budget.budgets", "where": {"category_id": "G00003"}},
    ],
}


def agent() -> Agent:
    found = yield ask("search_restaurants", query="Royal Oven", address_id="A00001", open_now=True)
    restaurant = found.value["items"][0]["restaurant_id"]
    menu = yield ask("get_menu", restaurant_id=restaurant, query="Margherita")
    pizza = menu.value["items"][0]["item_id"]
    options = yield ask("get_item_options", item_id=pizza)
    size = next(one for one in options.value["groups"][0]["options"] if one["name"] == "regular")
    basket = (yield ask("start_basket", restaurant_id=restaurant, address_id="A00001")).value["basket_id"]
    yield ask("add_item", basket_id=basket, item_id=pizza, option_ids=[size["option_id"]])
    left = yield ask("get_category_status", category_id="G00003")
    cost = (yield ask("view_basket", basket_id=basket)).value["total_cents"]
    assert cost <= left.value["available_cents"]
    code = yield f"That is {cost} cents, and the budget has them. What is the security code of your card?"
    order = yield ask("place_order", basket_id=basket, payment="card", cvv=code.split()[-1].rstrip("."))
    yield f"Your order {order.value['order_id']} is placed."
    arrived = yield ask("track_order", order_id=order.value["order_id"])
    assert arrived.value["status"] == "delivered"
    yield ask("add_expense", category_id="G00003", amount_cents=cost, description="Royal Oven")
    yield f"It has come, and {cost} cents are entered. Enjoy your meal."


STORY = Story(
    title="A dinner, and what it cost",
    environment="food_delivery+budget",
    query="A regular Margherita from Royal Oven to my home, please, if Eating out (G00003) still has the money.",
    agent=agent,
    user={
        "knows": {"code": "123"},
        "asked": {"code": ["security code"]},
        "tells": {"code": "It is {code}."},
        "then": ["The bell has rung. If that is it, enter it in the budget."],
        "satisfied": GOAL,
    },
    clock=ClockPolicy(jumps=(0, 40 * MINUTE)),
    goal=GOAL,
    tells="delivered.*Royal Oven",
)

if __name__ == "__main__":
    tell(STORY)
