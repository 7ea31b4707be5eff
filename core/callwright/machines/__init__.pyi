from callwright.machines.executors import Work as Work
from callwright.machines.executors import make_executor as make_executor
