"""Rules for a regressor's targets: their units, and several columns of them."""

from __future__ import annotations

import numpy as np

from mercer.testing.compare import close, expect
from mercer.testing.estimator_case import default_kernel, unless_exempt
from mercer.testing.regressor_case import RegressorCase, gaussian, multi_output, own_units
from mercer.testing.rules import Rules

__all__ = ["TARGETS"]

TARGETS: Rules[RegressorCase] = Rules()


@TARGETS.add(default_kernel, gaussian)
def rule_units_of_the_targets(case: RegressorCase) -> None:
    """With the default kernel, targets in other units give predictions in these units."""
    plain = case.observed(case.model, case.X_new)
    for factor in (1e-3, 1e4):
        scaled = case.observed(case.fit(case.X, case.y * factor), case.X_new)
        close(f"predictions of {factor:g} y", scaled / factor, plain, *case.accuracy.units)


@TARGETS.add(own_units, gaussian, unless_exempt("rule_linear_in_the_targets"))
def rule_linear_in_the_targets(case: RegressorCase) -> None:
    """With hyperparameters held, means follow the targets in proportion."""
    plain, scaled = case.hold(case.X, case.y), case.hold(case.X, 10.0 * case.y)
    got, wanted = scaled.predict(case.X_new), 10.0 * plain.predict(case.X_new)
    close("means of 10 y", got, wanted, 1e-8, 1e-9 * case.size)


@TARGETS.add(multi_output)
def rule_several_outputs(case: RegressorCase) -> None:
    """With y (n, P) predictions have an axis of outputs, last; with y (n, 1) too."""
    X, joint = case.X_new, case.X_joint
    (t, d), p, j = X.shape, 2, len(joint)
    model = case.two_outputs
    mean, std = model.predict(X, return_std=True)
    _, cov = model.predict(joint, return_cov=True)
    for what, value, shape in (
        ("predict", model.predict(X), (t, p)),
        ("the mean", mean, (t, p)),
        ("std", std, (t, p)),
        ("cov", cov, (j, j, p)),
    ):
        expect(value.shape == shape, f"{what} of shape {shape}", value)
    close("std squared", std[:j] ** 2, np.einsum("iip->ip", cov), 1e-7, 1e-10)
    if hasattr(model, "predict_interval"):
        ends = np.array(model.predict_interval(X))
        expect(ends.shape == (2, t, p), f"two ends of shape {(t, p)}", ends)
    if hasattr(model, "sample_y"):
        draws = model.sample_y(joint, 3)
        expect(draws.shape == (j, p, 3), f"draws of shape {(j, p, 3)}", draws)
    if hasattr(model, "predict_gradient"):
        gradient = model.predict_gradient(X).std
        expect(gradient.shape == (t, d, p), f"gradients of shape {(t, d, p)}", gradient)
    if hasattr(model, "log_predictive_density"):
        density = model.log_predictive_density(X, mean if case.mean_is_latent else case.Y[:t])
        expect(density.shape == (t, p), f"densities of shape {(t, p)}", density)
    column, plain = case.hold(case.X, case.y[:, None]), case.hold(case.X, case.y)
    close("one column of targets", column.predict(X), plain.predict(X)[:, None], 1e-9, 1e-12)


@TARGETS.add(own_units, multi_output, unless_exempt("rule_outputs_are_independent"))
def rule_outputs_are_independent(case: RegressorCase) -> None:
    """With hyperparameters held, each output is predicted as it is alone."""
    for p in range(2):
        alone = case.hold(case.X, case.Y[:, p])
        for got, wanted in zip(
            case.two_outputs.predict(case.X_new, return_std=True),
            alone.predict(case.X_new, return_std=True),
            strict=True,
        ):
            close(f"output {p}", got[:, p], wanted, 1e-8, 1e-9 * float(np.max(np.abs(case.Y))))
