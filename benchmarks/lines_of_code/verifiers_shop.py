# tools
import verifiers.v1 as vf


class ShopState(vf.State):
    orders: list[tuple[str, int]] = []  # noqa: RUF012
    failed: int = 0


class ShopTools(vf.Toolset[vf.ToolsetConfig, ShopState]):
    TOOL_PREFIX = "shop"

    async def setup_task(self, task):
        self.shelf = {"apple": 3, "pear": 2, "plum": 0}

    @vf.tool
    def stock(self, item: str) -> str:
        """How many of an item are left."""
        return str(self.shelf[item]) if item in self.shelf else self._fail(f"there is no {item}")

    @vf.tool
    def order(self, item: str, count: int) -> str:
        """Order some of an item. Fails if fewer are left."""
        if item not in self.shelf:
            return self._fail(f"there is no {item}")
        if not 0 < count <= self.shelf[item]:
            return self._fail(f"{self.shelf[item]} are left")
        self.shelf[item] -= count
        self.state.orders.append((item, count))
        return "ordered"

    def _fail(self, why):
        self.state.failed += 1
        return f"error: {why}"


# reward
class ShopData(vf.TaskData):
    item: str
    count: int


class ShopConfig(vf.TaskConfig):
    tools: vf.ToolsetConfig = vf.ToolsetConfig()


class ShopTask(vf.Task[ShopData, ShopState, ShopConfig]):
    @classmethod
    def toolsets(cls, config):
        return [ShopTools(config.tools)]

    @vf.reward(weight=1.0)
    async def reward(self, trace: vf.Trace) -> float:
        if trace.state.orders != [(self.data.item, self.data.count)]:
            return 0.0
        return 0.5 if trace.state.failed else 1.0


# data
WANTED = [("pear", 2), ("apple", 1), ("apple", 3)]


class ShopTasksConfig(vf.TasksetConfig):
    task: ShopConfig = ShopConfig()


class ShopTasks(vf.Taskset[ShopTask, ShopTasksConfig]):
    def load(self):
        return [
            ShopTask(ShopData(prompt=f"Order {count} of {item}.", item=item, count=count), self.config.task)
            for item, count in WANTED
        ]


# training
__all__ = ["ShopTasks"]
if __name__ == "__main__":
    ShopTools.run()
