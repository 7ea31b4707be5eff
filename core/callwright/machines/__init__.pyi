from callwright.machines.chunk_work import ChunkWork as ChunkWork
from callwright.machines.executors import make_executor as make_executor
