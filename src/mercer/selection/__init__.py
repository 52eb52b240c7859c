"""Which points become the basis of a low-rank approximation, and the approximation itself."""

from mercer.selection.clusters import Clusters, kmeans
from mercer.selection.greedy import pivoted_cholesky, sparse_greedy_matrix
from mercer.selection.partial import Selection
from mercer.selection.projection import Nystrom, nystrom
from mercer.selection.strategies import STRATEGIES, select
from mercer.selection.subset import random_subset
from mercer.selection.targets import TargetSelection, information_gain, matching_pursuit

__all__ = [
    "STRATEGIES",
    "Clusters",
    "Nystrom",
    "Selection",
    "TargetSelection",
    "information_gain",
    "kmeans",
    "matching_pursuit",
    "nystrom",
    "pivoted_cholesky",
    "random_subset",
    "select",
    "sparse_greedy_matrix",
]
