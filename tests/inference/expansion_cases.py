"""Problems of kernel expansions, and their optima by an independent convex solver."""

import cvxpy as cp
import numpy as np

from mercer.inference._columns import ArrayColumns
from mercer.inference._expansion_problem import ExpansionProblem
from mercer.likelihoods import EpsilonInsensitive, Gaussian, Huber, Laplace, Logistic
from mercer.priors import FeatureSelection, Laplacian, WeightDecay

NOISES = {
    "gaussian": Gaussian(0.2),
    "laplace": Laplace(0.5),
    "insensitive": EpsilonInsensitive(0.15, 0.5),
    "huber": Huber(0.5, 0.6),
    "logistic": Logistic(),
    "soft_margin": "soft_margin",
    "quadratic_soft_margin": "quadratic_soft_margin",
}
UNITS = {"gaussian": 0.2, "laplace": 0.5, "insensitive": 0.5, "huber": 0.25}
CLASSES = ("logistic", "soft_margin", "quadratic_soft_margin")
LINEAR = ("laplace", "insensitive", "soft_margin")


class Case:
    """Arrays of a problem: a sine with kernel columns of which some are repeated."""

    def __init__(self, name, n=50, seed=0, free=False, weighted=False, mean=False, centres=None):
        rng = np.random.default_rng(seed)
        x = np.sort(rng.uniform(-3, 3, n))
        y = np.sin(2 * x) + 0.3 * x + 0.4 * rng.laplace(size=n)
        self.name, self.x = name, x
        self.y = np.where(y > 0.2, 1.0, -1.0) if name in CLASSES else y
        z = x if centres is None else np.linspace(-3, 3, centres)
        Phi = np.exp(-((x[:, None] - z) ** 2))
        self.Phi = np.c_[Phi, Phi[:, :2]]
        self.H = np.c_[np.ones(n), x] if free else None
        self.weights = rng.integers(0, 4, n).astype(float) if weighted else None
        self.mean = 0.1 * np.cos(x) if mean else np.zeros(n)
        self.unit = UNITS.get(name, 1.0)

    def problem(self):
        return ExpansionProblem.of(
            ArrayColumns(self.Phi), NOISES[self.name], self.y, self.mean, self.H, self.weights
        )


def loss_expression(name, y, f, w):
    """Return sum_i w_i loss_i(f_i) as cvxpy writes it, of parameters as in NOISES."""
    rows = {
        "gaussian": lambda: cp.square(y - f) / 2,
        "laplace": lambda: cp.abs(y - f),
        "insensitive": lambda: cp.pos(cp.abs(y - f) - 0.15),
        "huber": lambda: cp.huber(y - f, 0.3) / 2,
        "logistic": lambda: cp.logistic(-cp.multiply(y, f)),
        "soft_margin": lambda: cp.pos(1 - cp.multiply(y, f)),
        "quadratic_soft_margin": lambda: cp.square(cp.pos(1 - cp.multiply(y, f))),
    }[name]()
    return cp.sum(cp.multiply(w, rows))


def convex_optimum(case, lam, prior=Laplacian):
    """Return the least F; lam is a number or one a column."""
    theta = cp.Variable(case.Phi.shape[1])
    f = case.mean + case.Phi @ theta
    if case.H is not None:
        f = f + case.H @ cp.Variable(case.H.shape[1])
    w = np.ones(len(case.y)) if case.weights is None else case.weights
    if prior == Laplacian:
        penalty = cp.sum(cp.multiply(lam * np.ones(case.Phi.shape[1]), cp.abs(theta)))
    else:
        penalty = lam**2 / case.unit * cp.sum_squares(theta)
    task = cp.Problem(cp.Minimize(loss_expression(case.name, case.y, f, w) + penalty))
    return task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)


def losses(name, y, f):
    """Return the losses of rows, written out."""
    r, m = y - f, y * f
    return {
        "gaussian": lambda: r**2 / 2,
        "laplace": lambda: np.abs(r),
        "insensitive": lambda: np.maximum(np.abs(r) - 0.15, 0),
        "huber": lambda: np.where(np.abs(r) <= 0.3, r**2 / 2, 0.3 * np.abs(r) - 0.045),
        "logistic": lambda: np.log1p(np.exp(-m)),
        "soft_margin": lambda: np.maximum(1 - m, 0),
        "quadratic_soft_margin": lambda: np.maximum(1 - m, 0) ** 2,
    }[name]()


def pull_bounds(name, y, f, near):
    """Return the least and the greatest -loss'(f) of rows, by differences about f."""
    slopes = [
        -(losses(name, y, f + s * near + near / 8) - losses(name, y, f + s * near - near / 8))
        / (near / 4)
        for s in (-1, 1)
    ]
    return np.minimum(*slopes), np.maximum(*slopes)


def penalty(case, prior, lam, theta):
    """Return unit sum_j gamma(theta_j/s), s = unit/lam (BKM 98 corrected, 99, 100)."""
    t = np.abs(theta) * lam / case.unit
    gamma = {Laplacian: t, WeightDecay: t**2, FeatureSelection: 1 - np.exp(-t)}[prior]
    return case.unit * np.sum(gamma)


def dense(found, case):
    """Return all coefficients."""
    theta = np.zeros(case.Phi.shape[1])
    theta[found.indices] = found.coef
    return theta


def values_at(found, case):
    """Return f, by the formula."""
    f = case.mean + case.Phi @ dense(found, case)
    return f if case.H is None else f + case.H @ found.beta
