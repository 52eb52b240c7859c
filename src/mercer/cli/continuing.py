"""Models of other kinds made into on-line ones, which go on where these stand."""

from __future__ import annotations

from os.path import basename
from typing import Any

from mercer.cli.errors import InputError
from mercer.cli.model import TableModel
from mercer.estimators import OnlineGPClassifier, OnlineGPRegressor
from mercer.posterior import Posterior

__all__ = ["continued", "is_online"]

# What is no longer so once rows have been added.
_PAST = (
    *("leave_one_out", "log_evidence", "gap", "basis"),
    *("expansion", "relevance_vectors", "outliers"),
)


def is_online(model: TableModel) -> bool:
    """Whether a model learns from further rows, and has begun to."""
    estimator = model.estimator
    own = isinstance(estimator, OnlineGPRegressor | OnlineGPClassifier)
    return own and estimator.__sklearn_is_fitted__()


def continued(model: TableModel, source: str, max_basis: int | None) -> tuple[TableModel, str]:
    """Return the on-line model that begins at the posterior of another, and a sentence about it.

    Parameters
    ----------
    model : TableModel
        With an estimator that has a posterior over a basis, or is an on-line one.
    source : str
        Its file.
    max_basis : int or None
        How many basis vectors to keep; None is 100, or what an on-line model has.
    """
    old = model.estimator
    if isinstance(old, OnlineGPRegressor | OnlineGPClassifier):
        if max_basis is not None:
            raise InputError(
                f"{source} is an on-line model, whose basis has room for {old.max_basis} already; "
                "--max-basis is for models of other kinds"
            )
        return model, f"{source} was on-line already"
    given, likelihood = _posterior(old, source), old.likelihood_
    posterior: Posterior = given[0] if isinstance(given, list) else given
    options: dict[str, Any] = {"max_basis": max_basis}
    if max_basis is None and posterior.weight:
        options["max_basis"] = 100
    if model.of_classes:
        options["classes"] = old.classes_
        # each class may have had its own, or all have had one
        likelihood = likelihood[0] if isinstance(likelihood, list) else likelihood
    kind: Any = OnlineGPClassifier if model.of_classes else OnlineGPRegressor
    try:
        estimator = kind.from_posterior(given, likelihood, **options)
    except ValueError as error:
        if model.of_classes and len(old.classes_) > 2 and not posterior.weight:
            raise InputError(
                f"{source} cannot be continued on-line: it has {len(old.classes_)} classes, each "
                "with functions of its own, and of such models only those of two classes can be "
                "continued; fit it anew with --method online-classes"
            ) from error
        if max_basis is not None and not posterior.weight:
            raise InputError(
                f"{source} cannot be continued on-line with --max-basis: its functions stay as "
                f"they are, all {posterior.n_basis}, and only their weights learn. Leave "
                "--max-basis out, or fit it anew with --method "
                f"{'online-classes' if model.of_classes else 'online'}"
            ) from error
        raise InputError(f"{source} cannot be continued on-line: {error}") from error
    estimator.feature_names_in_ = old.feature_names_in_
    estimator.n_features_in_ = old.n_features_in_
    told = (
        f"{source} goes on with {estimator.n_basis_} of its {posterior.n_basis} basis vectors, at "
        f"a loss of {estimator.projection_loss_:.3g} nats"
    )
    if not posterior.weight:
        told += "; its functions stay as they are, and only their weights learn"
    summary = {k: v for k, v in model.summary.items() if k not in _PAST}
    if summary:
        summary["notes"] = [
            *summary["notes"],
            f"continued from the {summary['method']} model {basename(source)}, with "
            f"{estimator.n_basis_} of {posterior.n_basis} basis vectors",
        ]
        summary["method"] = "online-classes" if model.of_classes else "online"
    return TableModel(model.target, model.columns, estimator, summary), told


def _posterior(estimator: Any, source: str) -> Posterior | list[Posterior]:
    """Return the posterior, or where each class has its own the list of them."""
    each = vars(estimator).get("posteriors_")
    if each is not None and all(isinstance(one, Posterior) for one in each):
        return list(each)
    try:
        found = estimator.posterior_
    except (AttributeError, ValueError, NotImplementedError):
        found = None
    if not isinstance(found, Posterior):
        raise InputError(
            f"{source} holds a {type(estimator).__name__} without a posterior over a basis, so "
            "that there is nothing to go on from; fit it anew with --method online"
        )
    return found
