"""Benchmarks of Mercer beside its peers and beside the bare work: ``python -m benchmarks``.

Each experiment is a module with a function ``run(options) -> Result``. Contenders are interleaved
and the best of several runs counts, so run them alone on the machine.
"""

#: In the order in which they run.
EXPERIMENTS = (
    "import_time",
    "commands",
    "kernel_matrix",
    "evidence",
    "memory",
    "predict",
    "fit",
    "compat",
    "classification",
    "digits",
    "ep",
    "low_rank",
    "sparse",
    "sparse_accuracy",
    "greedy",
    "laplacian",
    "laplacian_programme",
    "relevance",
    "iterative",
    "online",
    "online_memory",
    "online_streams",
    "online_updates",
    "online_digits",
    "uci",
)
