from callwright.machines.chunk_work import ChunkWork as ChunkWork
from callwright.machines.chunk_work import Salvage as Salvage
from callwright.machines.executors import make_executor as make_executor
from callwright.machines.interrupts import Interrupted as Interrupted
from callwright.machines.interrupts import answered as answered
from callwright.machines.interrupts import postponed as postponed
