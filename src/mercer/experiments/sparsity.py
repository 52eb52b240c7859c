"""Sparsity against error: how many kernels a model needs, and what it pays for having few."""

from __future__ import annotations

from mercer.experiments.comparison import Comparison, compare
from mercer.experiments.contenders import (
    DENSE,
    EXACT,
    LAPLACIAN,
    RELEVANCE,
    SPARSE,
    SUPPORT,
    VECTORS,
)
from mercer.experiments.records import Claim, Experiment, Outcome, Setting
from mercer.experiments.tasks import tables, tasks

__all__ = ["EXPERIMENT"]

_SETS = (
    "sinc",
    "boston",
    "abalone",
    "ripley-synth",
    "pima-ripley",
    "ida-banana",
    "ida-breast-cancer",
    "ida-heart",
    "ida-titanic",
    "ida-german",
    "ida-waveform",
    "ida-ringnorm",
)
_QUICK = ("sinc", "boston", "ripley-synth")
# An error above that of the exact process by no more than this factor counts as no worse.
_RATIO = 1.1


def _run(setting: Setting) -> Outcome:
    problems = list(tasks(setting, _SETS, _QUICK))
    done = compare(setting, problems, (LAPLACIAN, RELEVANCE, SUPPORT, EXACT))
    return Outcome(
        done.tables(),
        _claims(done),
        done.figures(),
        (
            "Each method has its own choices made on the training rows, a thousand of them at the "
            "most, which the seconds include. Laplacian process: `LaplacianProcessRegressor()` and "
            "`LaplacianProcessClassifier()`, Gaussian and logistic. Relevance vectors: "
            "`RelevanceVectorRegressor()` and `RelevanceVectorClassifier()`. Support vectors: "
            "scikit-learn's SVR and SVC, inputs and targets standardised, C, epsilon and one width "
            "by five folds over a grid. Exact Gaussian process: `GPRegressor()` and "
            "`GPClassifier()`. All but support vectors have a length scale a column. The error on "
            "sin(x)/x is that from the function, without noise, on the others that from new rows; "
            "densities are of new rows throughout. Latent coverage is the part of a grid, in "
            "percent, where the function lies in its 90% interval, known of sin(x)/x alone: error "
            "bars of sparse expansions take the kernels in use for given, and it is reported, not "
            "judged.",
        ),
    )


def _claims(done: Comparison) -> tuple[Claim, ...]:
    claims = []
    for task in (*done.numbers, *done.labels):
        ours, vectors, exact = (done.mean(task, who) for who in (SPARSE, VECTORS, DENSE))
        claims += [
            Claim(
                f"{task}: a Laplacian process has fewer kernels than there are support vectors",
                f"{ours.kernels:.1f} beside {vectors.kernels:.1f} of {exact.kernels:.0f}",
                ours.kernels < vectors.kernels,
            ),
            Claim(
                f"{task}: its error is at most {_RATIO} times that of the exact process",
                f"{ours.error:.4g} beside {exact.error:.4g}, support vectors {vectors.error:.4g}",
                ours.error <= _RATIO * exact.error,
            ),
        ]
    return tuple(claims)


EXPERIMENT = Experiment(
    name="sparsity",
    title="Kernels in use against test errors, of sparse and of exact methods",
    source="BKM 5.3",
    published="The Laplacian prior assumes that only very few basis functions are not zero, and "
    "the mode keeps what it assumes. The paper measures neither the number nor the error.",
    run=_run,
    data=tables(_SETS),
)
