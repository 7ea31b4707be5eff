# tools
import callwright as cw


def fresh(scenario, seed):
    return {"shelf": {"apple": 3, "pear": 2, "plum": 0}, "orders": []}


def have(shop, item):
    if item not in shop["shelf"]:
        raise cw.ToolError("NO_ITEM", f"there is no {item}")
    return shop["shelf"][item]


@cw.tool(read_only=True)
def stock(shop: dict, /, item: str) -> int:
    """How many of an item are left."""
    return have(shop, item)


@cw.tool
def order(shop: dict, /, item: str, count: int) -> str:
    """Order some of an item. Fails if fewer are left."""
    left = have(shop, item)
    if not 0 < count <= left:
        raise cw.ToolError("TOO_FEW", f"{left} are left")
    shop["shelf"][item] -= count
    shop["orders"].append([item, count])
    return "ordered"


def orders(shop):
    return shop["orders"]


world = cw.environment("shop", tools=[stock, order], state=fresh, goal_state=orders)


# reward
class NoFailure(cw.RewardComponent):
    name = "no-failure"

    def score(self, attempt):
        failed = attempt.whole_trace.failures
        why = tuple(cw.Evidence("failed_call", one.outcome.message, one.call) for one in failed)
        return cw.Score(float(not failed), evidence=why)


final = cw.default_registry().create("reward component", "final-state")
reward = cw.RewardRecipe("shop", (cw.Term(final), cw.Term(NoFailure(), requires=("final_state",))))

# data
WANTED = [("pear", 2), ("apple", 1), ("apple", 3)]
tasks = [
    cw.Task(f"{count}-{item}", f"Order {count} of {item}.", world.tools, cw.Answer(), world, facts={"goal": goal})
    for item, count in WANTED
    for goal in [{"state": [[item, count]]}]
]

# training
RECIPE = {
    "name": "shop",
    "ir": "hermes",
    "model": {"path": "Qwen/Qwen3-0.6B"},
    "algorithm": {"name": "grpo"},
    "trainer": {"name": "local", "steps": 100, "prompts": 3, "group": 8},
    "turns": {"assistant_turns": 4},
}
if __name__ == "__main__":
    cw.train(RECIPE, corpus=tasks, reward=reward)
