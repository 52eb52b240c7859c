"""Rows learned one at a time: Mercer's on-line regression beside GPyTorch's fantasy models."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.peers import GPyTorch, has_gpytorch
from benchmarks.report import Options, Result, Verdict, table
from benchmarks.uci import scores
from mercer import GPRegressor, OnlineGPRegressor
from mercer.kernels import RBF
from mercer.likelihoods import Gaussian

FIRST = 100  # rows that all models have before the first update
SIZES = (100, 200, 400)
MERCER = "Mercer, {} points"
EXACT, OVC = "GPyTorch, ExactGP.get_fantasy_model", "GPyTorch, OVC from 100 inducing points"
EQUAL = 1.005  # how much larger an error may be and be called equal
LEAD = 10
JITTER = 1e-8  # of the variational process, of the variance 1


class Problem(NamedTuple):
    """Rows to learn in turn and rows to test on, and the model that all have."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    variance: float
    lengths: Any
    noise: float


class Found(NamedTuple):
    """Seconds of an update, on average over all and over the last 100, and scores at the end."""

    each: float
    last: float
    scores: list[float]


def friedman(n: int, tests: int) -> Problem:
    """Return Friedman's first function with noise, under hyperparameters of a fit to 500 rows."""
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(n + tests, n_features=10, noise=1.0, random_state=0)
    y = (y - y[:FIRST].mean()) / y[:FIRST].std()
    fit = GPRegressor(mean="zero", random_state=0).fit(X[:500], y[:500])
    rbf = fit.kernel_.kernel
    return Problem(
        *(X[:n], y[:n], X[n:], y[n:]),
        float(fit.kernel_.variance),
        np.array(rbf.length_scale, dtype=float),
        float(fit.likelihood_.noise),
    )


def _timed(update: Any, problem: Problem) -> tuple[float, float]:
    """Give rows to `update` one after another; return the seconds of all, and of the last 100."""
    seconds = []
    for i in range(FIRST, len(problem.y)):
        start = time.perf_counter()
        update(problem.X[i : i + 1], problem.y[i : i + 1])
        seconds.append(time.perf_counter() - start)
    return float(np.mean(seconds)), float(np.mean(seconds[-100:]))


def mercer(problem: Problem, size: int, chunk: bool = False) -> Found:
    """Learn by `partial_fit`, one row in a call, or the rest in one call if `chunk`."""
    kernel = problem.variance * RBF(problem.lengths)
    model = OnlineGPRegressor(kernel, Gaussian(problem.noise), mean="zero", max_basis=size)
    model.partial_fit(problem.X[:FIRST], problem.y[:FIRST])
    if chunk:
        start = time.perf_counter()
        model.partial_fit(problem.X[FIRST:], problem.y[FIRST:])
        each = (time.perf_counter() - start) / (len(problem.y) - FIRST)
        times = each, each
    else:
        times = _timed(model.partial_fit, problem)
    return Found(*times, scores(*model.predict(problem.X_test, return_std=True), problem.y_test))


def _tensors(torch: Any, *arrays: Any) -> list[Any]:
    return [torch.tensor(np.asarray(a), dtype=torch.float64) for a in arrays]


def _by_fantasies(model: Any, likelihood: Any, problem: Problem) -> Found:
    """Have a model of GPyTorch learn by `get_fantasy_model`, which returns another each time."""
    import gpytorch
    import torch

    now = [model]

    def update(x: Any, y: Any) -> None:
        now[0] = now[0].get_fantasy_model(*_tensors(torch, x, y))

    (X_test,) = _tensors(torch, problem.X_test)
    with (
        torch.no_grad(),
        gpytorch.settings.fast_pred_var(),
        gpytorch.settings.max_cholesky_size(10**9),
        gpytorch.settings.cholesky_jitter(double_value=1e-10),
    ):
        model(X_test[:1])  # fantasies go on from what a prediction has cached
        times = _timed(update, problem)
        predicted = likelihood(now[0](X_test))
        mean, std = predicted.mean.numpy(), predicted.variance.sqrt().numpy()
    return Found(*times, scores(mean, std, problem.y_test))


def exact_fantasies(problem: Problem) -> Found:
    """GPyTorch's exact process: every row stays in it."""
    peer = GPyTorch(problem.X[:FIRST], problem.y[:FIRST], problem.lengths, problem.noise)
    peer.model.covar_module.outputscale = problem.variance
    peer.model.eval()
    peer.likelihood.eval()
    return _by_fantasies(peer.model, peer.likelihood, problem)


def ovc_fantasies(problem: Problem) -> Found:
    """GPyTorch's variational process of the first rows, an inducing point each, and fantasies.

    Its variational distribution is the best one for them, which is known for Gaussian noise.
    """
    import gpytorch
    import torch

    X, y = _tensors(torch, problem.X[:FIRST], problem.y[:FIRST])
    q = gpytorch.variational.CholeskyVariationalDistribution(FIRST)

    class Model(gpytorch.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            strategy = gpytorch.variational.VariationalStrategy(
                self, X, q, learn_inducing_locations=False, jitter_val=JITTER
            )
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(
                gpytorch.kernels.RBFKernel(ard_num_dims=X.shape[1])
            )
            self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

        def forward(self, inputs: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(inputs), self.covar_module(inputs)
            )

    model = Model().double()
    model.covar_module.outputscale = problem.variance
    model.covar_module.base_kernel.lengthscale = torch.tensor(problem.lengths)[None]
    model.likelihood.noise = problem.noise
    with torch.no_grad():
        eye = torch.eye(FIRST, dtype=torch.float64)
        L = torch.linalg.cholesky(model.covar_module(X).to_dense() + JITTER * eye)
        covariance = torch.linalg.inv(eye + L.T @ L / problem.noise)  # of L^-1 f
        q.variational_mean.copy_(covariance @ L.T @ y / problem.noise)
        q.chol_variational_covar.copy_(torch.linalg.cholesky(covariance))
    model.variational_strategy.variational_params_initialized.fill_(1)
    model.eval()
    return _by_fantasies(model, model.likelihood, problem)


def run(options: Options) -> Result:
    """Learn rows one at a time, all by the same kernel and noise."""
    n, tests = (FIRST + 12, 50) if options.quick else (600, 2000)  # fantasies keep their past
    problem = friedman(n, tests)
    with threadpool_limits(1):
        found = {MERCER.format(m): mercer(problem, m) for m in SIZES}
        chunks = {MERCER.format(m): mercer(problem, m, chunk=True) for m in SIZES}
        if has_gpytorch(options):
            import torch

            threads = torch.get_num_threads()
            torch.set_num_threads(1)
            found[EXACT] = exact_fantasies(problem)
            found[OVC] = ovc_fantasies(problem)
            torch.set_num_threads(threads)
    lines = [
        [
            name,
            f"{1e6 * each.each:,.0f}",
            f"{1e6 * each.last:,.0f}",
            f"{1e6 * chunks[name].each:,.0f}" if name in chunks else "",
            f"{each.scores[0]:.4f}",
            f"{each.scores[1]:.4f}",
        ]
        for name, each in found.items()
    ]
    verdicts = []
    for peer in (EXACT, OVC):
        if peer not in found:
            continue
        ours = [MERCER.format(m) for m in SIZES]
        equal = [name for name in ours if found[name].scores[0] <= EQUAL * found[peer].scores[0]]
        best = min(equal or ours, key=lambda name: found[name].each)
        lead = found[peer].each / found[best].each
        verdicts.append(
            Verdict(
                f"faster than {peer}, at an error of at most {EQUAL} of its",
                f"{lead:.1f} times, {best}, RMSE {found[best].scores[0]:.4f} and "
                f"{found[peer].scores[0]:.4f}",
                f"at least {LEAD} times",
                bool(equal) and lead >= LEAD,
            )
        )
    return Result(
        "On-line updates",
        f"Friedman's first function, 10 columns, noise of variance 1, targets scaled by the first "
        f"{FIRST} rows; {n} rows, all models with {FIRST} of them before the first update; one "
        "kernel and one noise for all, of an exact fit to 500 rows; one row in a call, one "
        "thread, float64. RMSE and negative log density of "
        f"{tests} further rows at the end. `last`: of the last 100 rows, as GPyTorch's models grow "
        "with each. `in one call`: all rows given at once. OVC is from a variational process "
        f"of the first {FIRST} rows with as many inducing points. Each was run once.",
        [
            table(
                ["contender", "us a row", "last, us", "in one call, us", "RMSE", "NLPD"],
                lines,
            )
        ],
        verdicts,
        [] if EXACT in found else ["GPyTorch was left out, or is not installed."],
    )
