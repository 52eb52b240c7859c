"""The choice between the compiled steps of sparse Bayesian learning and their NumPy twin.

Of M functions with Gram matrix Phi'Phi, k are in a model with precisions s, noise 1/beta, and

    Xi = (diag(s) + beta Phi_a'Phi_a)^-1,   mu = beta Xi Phi_a'z   (BKM 131).

With C the covariance of the data under it, all M functions have S_j = phi_j'C^-1 phi_j and
Q_j = phi_j'C^-1 z. Of a function in the model the same without itself are 1/Xi_jj - s_j and
mu_j/Xi_jj. The log evidence as a function of one precision is, up to a constant,

    [ln s - ln(s + S) + Q^2/(s + S)]/2,

which is highest at s = S^2/(Q^2 - S) if Q^2 > S, else at infinity, where it is 0: the function is
left out. Each step changes one precision, and all else by rank one.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dtrtri

from mercer.linalg.loops import loops

__all__ = [
    "ADD",
    "CANCELLED",
    "CHANGE",
    "COLLINEAR",
    "NOTHING",
    "REMOVE",
    "Model",
    "empty_model",
    "precisions",
]

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

#: What a step does; the code of `choose` and `run`.
NOTHING, ADD, CHANGE, REMOVE = 0, 1, 2, 3
#: A function is refused of which no more than this part is not explained by those in the model:
#: the rest is rounding of a Gram matrix.
COLLINEAR = 1e-9
#: Of digits that differences cost, so many may go before the matrices must be fresh.
CANCELLED = 1e-8


class Model(NamedTuple):
    """What the steps change in place, with room for `cap` functions; the first k are in use.

    whole : (2,) k; steps since the matrices were fresh
    active : (cap,) the functions in the model
    place : (M,) 0 outside the model, 1 in it, 2 in it for good, -1 refused as collinear
    s, mu : (cap,) precisions and posterior means
    Xi : (cap, cap) posterior covariance
    G : (cap, M) rows of the Gram matrix
    D : (M,) its diagonal
    S, Q : (M,) the statistics of all functions under the model
    numbers : (3,) beta; what the steps have gained; the least part of a number that was left of it
        in a difference since the matrices were fresh
    c, u : (cap,), (M,) room to work in
    """

    whole: Whole
    active: Whole
    place: Whole
    s: Floats
    mu: Floats
    Xi: Floats
    G: Floats
    D: Floats
    S: Floats
    Q: Floats
    numbers: Floats
    c: Floats
    u: Floats

    def grown(self, cap: int) -> Model:
        """Return the same with room for more functions."""
        k = int(self.whole[0])
        new = empty_model(self.D, cap)._replace(
            whole=self.whole, place=self.place, S=self.S, Q=self.Q, numbers=self.numbers, u=self.u
        )
        new.active[:k], new.s[:k], new.mu[:k] = self.active[:k], self.s[:k], self.mu[:k]
        new.Xi[:k, :k], new.G[:k] = self.Xi[:k, :k], self.G[:k]
        return new

    def with_room(self, k: int) -> Model:
        """Return the same if it has room for k functions, else with room for twice as many."""
        cap = len(self.s)
        return self if k <= cap else self.grown(min(max(k, 2 * cap), len(self.D)))

    def settle(self, R: Floats, s: Floats, mu: Floats, beta: float) -> None:
        """Compute Xi and S afresh from the upper factor R'R of Xi^-1; G and D are there: O(k^2 M).

        Q and the places of functions are for the caller.
        """
        k = len(s)
        inverse, _ = dtrtri(R, lower=0)
        self.whole[:] = k, 0
        self.s[:k], self.mu[:k] = s, mu
        self.Xi[:k, :k] = inverse @ inverse.T
        self.numbers[:] = beta, 0.0, 1.0
        U = dtrmm(beta, inverse, self.G[:k].T, side=1)  # (M, k) = beta G'R^-1
        self.S[:] = beta * self.D - np.einsum("ij->i", np.square(U, out=U))


def empty_model(D: Floats, cap: int) -> Model:
    """Return the state of no function in the model, with room for `cap`."""
    M = len(D)
    return Model(
        whole=np.zeros(2, dtype=np.int64),
        active=np.zeros(cap, dtype=np.int64),
        place=np.zeros(M, dtype=np.int64),
        s=np.zeros(cap),
        mu=np.zeros(cap),
        Xi=np.zeros((cap, cap)),
        G=np.empty((cap, M)),
        D=D,
        S=np.zeros(M),
        Q=np.zeros(M),
        numbers=np.zeros(3),
        c=np.zeros(cap),
        u=np.zeros(M),
    )


@cache
def precisions() -> ModuleType:
    """Return the module of the steps: compiled where Numba works, NumPy elsewhere."""
    if loops().__name__.endswith("_twins"):
        from mercer.linalg import _precisions_twins

        return _precisions_twins
    from mercer.linalg import _precisions

    return _precisions
