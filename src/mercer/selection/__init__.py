"""Which rows become the basis of a low-rank approximation, and the approximation itself."""

from mercer.selection.greedy import pivoted_cholesky, sparse_greedy_matrix
from mercer.selection.partial import Selection
from mercer.selection.projection import Nystrom, nystrom
from mercer.selection.subset import random_subset

__all__ = [
    "Nystrom",
    "Selection",
    "nystrom",
    "pivoted_cholesky",
    "random_subset",
    "sparse_greedy_matrix",
]
