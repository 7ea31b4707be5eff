# tools
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer


class Shop:
    def reset(self, item, count, **row):
        self.shelf = {"apple": 3, "pear": 2, "plum": 0}
        self.orders, self.wanted, self.failed = [], (item, count), 0

    def stock(self, item: str) -> int:
        """How many of an item are left.

        Args:
            item: The name of the item.
        """
        return self._have(item)

    def order(self, item: str, count: int) -> str:
        """Order some of an item. Fails if fewer are left.

        Args:
            item: The name of the item.
            count: How many.
        """
        left = self._have(item)
        if not 0 < count <= left:
            self._fail(f"{left} are left")
        self.shelf[item] -= count
        self.orders.append((item, count))
        return "ordered"

    def _have(self, item):
        if item not in self.shelf:
            self._fail(f"there is no {item}")
        return self.shelf[item]

    def _fail(self, why):
        self.failed += 1
        raise ValueError(why)

    # reward
    def get_reward(self) -> float:
        if self.orders != [self.wanted]:
            return 0.0
        return 0.5 if self.failed else 1.0


# data
WANTED = [("pear", 2), ("apple", 1), ("apple", 3)]
rows = [
    {"prompt": [{"role": "user", "content": f"Order {count} of {item}."}], "item": item, "count": count}
    for item, count in WANTED
]

# training
if __name__ == "__main__":
    trainer = GRPOTrainer(
        model="Qwen/Qwen3-0.6B",
        args=GRPOConfig("shop", max_steps=100, num_generations=8, max_tool_calling_iterations=4),
        train_dataset=Dataset.from_list(rows),
        environment_factory=Shop,
    )
    trainer.train()
