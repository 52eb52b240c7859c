"""Trees of scikit-learn's kernels, for Hypothesis, and kernels of users' own."""

from __future__ import annotations

import numpy as np
import sklearn.gaussian_process.kernels as skl
from hypothesis import strategies as st

values = st.floats(0.3, 3.0)
bounds = st.sampled_from([(1e-5, 1e5), "fixed"])


def leaves(columns: int):
    lengths = st.one_of(values, st.lists(values, min_size=columns, max_size=columns))
    kinds = [
        st.builds(skl.RBF, lengths, bounds),
        st.builds(skl.Matern, lengths, bounds, st.sampled_from([0.5, 1.5, 2.5, np.inf])),
        st.builds(skl.RationalQuadratic, values, values, bounds, bounds),
        st.builds(skl.DotProduct, values, bounds),
        st.builds(skl.ConstantKernel, values, bounds),
        st.builds(skl.WhiteKernel, values, bounds),
    ]
    if columns == 1:
        kinds.append(st.builds(skl.ExpSineSquared, values, values, bounds, bounds))
    return st.one_of(kinds)


def trees(columns: int):
    return st.recursive(
        leaves(columns),
        lambda inside: st.one_of(
            st.builds(skl.Sum, inside, inside),
            st.builds(skl.Product, inside, inside),
            st.builds(skl.Exponentiation, inside, st.just(2)),
        ),
        max_leaves=5,
    )


class Shifted(skl.RBF):
    """A user's kernel: a class derived from scikit-learn's, with another value."""

    def __call__(self, X, Y=None, eval_gradient=False):
        found = super().__call__(X, Y, eval_gradient)
        return (found[0] + 0.5, found[1]) if eval_gradient else found + 0.5

    def diag(self, X):
        return super().diag(X) + 0.5


class Loud(skl.WhiteKernel):
    """Noise of a user's own, that only a call with one set of rows has."""

    def __call__(self, X, Y=None, eval_gradient=False):
        found = super().__call__(X, Y, eval_gradient)
        return (3 * found[0], 3 * found[1]) if eval_gradient else 3 * found

    def diag(self, X):
        return 3 * super().diag(X)


class Looked(skl.Kernel):
    """Looks up covariances by numbers of rows, which must stay whole numbers."""

    def __init__(self, table=None):
        self.table = table

    def __call__(self, X, Y=None, eval_gradient=False):
        Y = X if Y is None else Y
        K = self.table[np.ix_(X[:, 0], Y[:, 0])]
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X):
        return self.table[X[:, 0], X[:, 0]]

    def is_stationary(self):
        return False
