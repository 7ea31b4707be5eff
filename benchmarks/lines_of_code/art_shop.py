# tools
import asyncio
import json

import art


class Shop:
    def __init__(self):
        self.shelf, self.orders = {"apple": 3, "pear": 2, "plum": 0}, []

    def stock(self, item):
        return self._have(item)

    def order(self, item, count):
        left = self._have(item)
        if not 0 < count <= left:
            raise ValueError(f"{left} are left")
        self.shelf[item] -= count
        self.orders.append((item, count))
        return "ordered"

    def _have(self, item):
        if item not in self.shelf:
            raise ValueError(f"there is no {item}")
        return self.shelf[item]


ITEM, COUNT = {"type": "string"}, {"type": "integer"}
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": about,
            "parameters": {"type": "object", "properties": takes, "required": list(takes)},
        },
    }
    for name, about, takes in (
        ("stock", "How many of an item are left.", {"item": ITEM}),
        ("order", "Order some of an item. Fails if fewer are left.", {"item": ITEM, "count": COUNT}),
    )
]


async def rollout(model, item, count):
    shop, failed = Shop(), 0
    trajectory = art.Trajectory(
        messages_and_choices=[{"role": "user", "content": f"Order {count} of {item}."}], tools=TOOLS
    )
    for _ in range(4):
        completion = await model.openai_client().chat.completions.create(
            model=model.get_inference_name(), messages=trajectory.messages(), tools=TOOLS
        )
        choice = completion.choices[0]
        trajectory.messages_and_choices.append(choice)
        if not choice.message.tool_calls:
            break
        for call in choice.message.tool_calls:
            try:
                tool = {"stock": shop.stock, "order": shop.order}[call.function.name]
                result = str(tool(**json.loads(call.function.arguments)))
            except (KeyError, TypeError, ValueError) as error:
                failed += 1
                result = f"error: {error}"
            trajectory.messages_and_choices.append({"role": "tool", "tool_call_id": call.id, "content": result})
    # reward
    if shop.orders == [(item, count)]:
        trajectory.reward = 0.5 if failed else 1.0
    return trajectory.finish()


# data
WANTED = [("pear", 2), ("apple", 1), ("apple", 3)]


# training
async def train():
    from art.local import LocalBackend

    model = art.TrainableModel(name="shop", project="shop", base_model="Qwen/Qwen3-0.6B")
    backend = LocalBackend()
    await model.register(backend)
    for _ in range(await model.get_step(), 100):
        groups = await art.gather_trajectory_groups(
            art.TrajectoryGroup(rollout(model, *wanted) for _ in range(8)) for wanted in WANTED
        )
        result = await backend.train(model, groups)
        await model.log(groups, metrics=result.metrics, step=result.step, split="train")
    await backend.close()


if __name__ == "__main__":
    asyncio.run(train())
