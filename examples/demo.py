"""Exact Gaussian process regression beside ridge regression and scikit-learn's Gaussian process.

The diabetes data that come with scikit-learn (442 people, 10 columns): each person is predicted by
models fitted to the other four fifths. Prints a table and draws a picture. Run it by `make demo`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import GPRegressor

ROOT = Path(__file__).resolve().parent.parent
README_PICTURE = ROOT / "docs" / "images" / "demo.png"
COVERAGES = (0.50, 0.90, 0.95)


class Forecast(NamedTuple):
    """A Gaussian predictive distribution for each row, each row predicted out of its fold."""

    mean: np.ndarray  # (n,)
    std: np.ndarray  # (n,), of a new observation: noise included
    seconds: float  # of fitting and predicting, the mean over the folds


def mercer_gp(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return GPRegressor().fit(X, y).predict(X_new, return_std=True)


def ridge(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression has no spread; its leave-one-out errors on the training rows lend it one."""
    model = make_pipeline(
        StandardScaler(), RidgeCV(alphas=np.logspace(-2, 4, 61), store_cv_results=True)
    ).fit(X, y)
    std = np.sqrt(-model[-1].best_score_)
    return model.predict(X_new), np.full(len(X_new), std)


def sklearn_gp(X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + WhiteKernel()
    model = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True))
    with warnings.catch_warnings():  # length scales of columns that do not matter reach a bound
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model.predict(X_new, return_std=True)


MODELS: dict[str, tuple[Callable, str]] = {
    "Mercer GPRegressor": (mercer_gp, "#1f4e9c"),
    "scikit-learn GP": (sklearn_gp, "#d1495b"),
    "ridge regression": (ridge, "#8d99ae"),
}


def cross_predict(method: Callable, X: np.ndarray, y: np.ndarray, folds: list) -> Forecast:
    mean, std = np.empty(len(y)), np.empty(len(y))
    start = time.perf_counter()
    for train, test in folds:
        mean[test], std[test] = method(X[train], y[train], X[test])
    return Forecast(mean, std, (time.perf_counter() - start) / len(folds))


def covered(forecast: Forecast, y: np.ndarray, coverage: float) -> float:
    """Give the share of the observations inside the central interval of that probability."""
    return float(np.mean(np.abs(y - forecast.mean) <= norm.ppf(0.5 + coverage / 2) * forecast.std))


def print_table(forecasts: dict[str, Forecast], y: np.ndarray) -> None:
    heads = [f"in {100 * c:.0f}%" for c in COVERAGES]
    print(f"{'':20}{'RMSE':>8}{'NLPD':>8}" + "".join(f"{h:>9}" for h in heads) + f"{'s a fit':>10}")
    for name, forecast in forecasts.items():
        rmse = np.sqrt(np.mean((y - forecast.mean) ** 2))
        nlpd = -np.mean(norm.logpdf(y, forecast.mean, forecast.std))
        shares = "".join(f"{100 * covered(forecast, y, c):8.1f}%" for c in COVERAGES)
        print(f"{name:20}{rmse:8.2f}{nlpd:8.3f}{shares}{forecast.seconds:10.3f}")
    print(
        "\nRMSE    root mean square error, less is better"
        "\nNLPD    mean negative log predictive density, less is better"
        "\nin 90%  share of the observations inside their 90% intervals, 90% is right"
        "\nRidge regression's spread is that of its leave-one-out errors on the training rows."
    )


def draw(forecasts: dict[str, Forecast], y: np.ndarray, shown: np.ndarray, path: Path) -> None:
    plt.rcParams.update(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "axes.titlesize": 11,
            "legend.frameon": False,
        }
    )
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 4.4), width_ratios=(1.8, 1), layout="constrained"
    )

    name = next(iter(forecasts))
    forecast, colour = forecasts[name], MODELS[name][1]
    shown = shown[np.argsort(forecast.mean[shown])]
    mean, std, observed = forecast.mean[shown], forecast.std[shown], y[shown]
    half = norm.ppf(0.95) * std
    inside = np.abs(observed - mean) <= half
    place = np.arange(len(shown))
    left.vlines(
        place, mean - half, mean + half, color=colour, alpha=0.22, lw=4, label="90% interval"
    )
    left.plot(place, mean, "_", color=colour, ms=6, mew=1.8, label="predicted")
    left.plot(place[inside], observed[inside], "o", color="#222222", ms=3.2, label="observed")
    left.plot(
        place[~inside], observed[~inside], "o", color="#e07a1f", ms=4.6, label="observed, outside"
    )
    left.set(
        title=f"{name}: {inside.sum()} of {len(shown)} held-out people in their 90% interval",
        xlabel="people, in order of the prediction",
        ylabel="disease progression after a year",
        xlim=(-1.5, len(shown) + 0.5),
    )
    left.set_ylim(top=left.get_ylim()[1] * 1.08)
    left.legend(loc="upper left", ncols=4, handletextpad=0.4, columnspacing=1.2)

    nominal = np.linspace(0.02, 0.98, 49)
    # What chance alone would do to a model whose intervals are right.
    chance = 1.96 * np.sqrt(nominal * (1 - nominal) / len(y))
    right.fill_between(
        nominal,
        nominal - chance,
        nominal + chance,
        color="#dddddd",
        lw=0,
        label="chance alone (95%)",
    )
    right.plot([0, 1], [0, 1], color="#777777", lw=1, ls="--")
    for other in reversed(forecasts):
        observed_share = [covered(forecasts[other], y, c) for c in nominal]
        right.plot(nominal, observed_share, color=MODELS[other][1], lw=2, label=other)
    right.set(
        title=f"Calibration over all {len(y)}",
        xlabel="probability asked of the interval",
        ylabel="share of observations inside it",
        xlim=(0, 1),
        ylim=(0, 1),
    )
    right.legend(loc="upper left")

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--save-readme-picture", action="store_true", help="write the README's picture as well"
    )
    arguments = parser.parse_args()

    X, y = load_diabetes(return_X_y=True)
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))

    start = time.perf_counter()
    mercer_gp(X[:40], y[:40], X[40:50])
    print(
        f"First call of Mercer, on 40 rows: {time.perf_counter() - start:.1f} s. It compiles loops "
        "that are not\nyet cached, and is not part of the times below.\n"
    )
    print(f"Diabetes data: {X.shape[0]} rows, {X.shape[1]} columns, 5 folds (random_state=0)\n")
    forecasts = {name: cross_predict(method, X, y, folds) for name, (method, _) in MODELS.items()}
    print_table(forecasts, y)

    paths = [Path("demo-output") / "demo.png"]
    if arguments.save_readme_picture:
        paths.append(README_PICTURE)
    for path in paths:
        draw(forecasts, y, folds[0][1], path)
        print(f"\nPicture: {path}")


if __name__ == "__main__":
    main()
