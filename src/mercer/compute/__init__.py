"""Running work over tiles and blocks of rows: threads, executors and their registry, Ctrl-C."""

from mercer.compute.executors import (
    Executor,
    SerialExecutor,
    ThreadExecutor,
    executor_for,
    register_executor,
    row_blocks,
)
from mercer.compute.interruption import heard
from mercer.compute.threads import blas_for, map_tiles, run_together, thread_count

__all__ = [
    "Executor",
    "SerialExecutor",
    "ThreadExecutor",
    "blas_for",
    "executor_for",
    "heard",
    "map_tiles",
    "register_executor",
    "row_blocks",
    "run_together",
    "thread_count",
]
