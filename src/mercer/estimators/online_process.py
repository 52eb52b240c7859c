"""What an on-line estimator shows of its process: posterior, basis and sums."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError

from mercer.estimators.online_options import require_posterior
from mercer.estimators.process import FittedProcess
from mercer.estimators.state import StorableEstimator
from mercer.inference.online import OnlineProcess
from mercer.kernels import Kernel
from mercer.means import Mean
from mercer.posterior import Posterior, Predictive

__all__ = ["HasOnlineProcess"]


class HasOnlineProcess(StorableEstimator, FittedProcess):
    """Adds to an estimator the attributes of an on-line process, once there is one."""

    n_init: int
    _process: OnlineProcess
    _posterior: Posterior | None
    _waiting: dict[str, Any] | None

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a process."""
        return "_process" in vars(self)

    def _require_begun(self) -> OnlineProcess:
        if "_process" in vars(self):
            return self._process
        waiting = vars(self).get("_waiting")
        name = type(self).__name__
        if waiting is None:
            raise NotFittedError(
                f"this {name} instance is not fitted yet: call 'fit' or 'partial_fit' first"
            )
        n = len(waiting["Y"])
        raise NotFittedError(
            f"this {name} instance is not fitted yet: {n} of the first n_init={self.n_init} rows "
            "are there, by which hyperparameters are chosen. Give more to 'partial_fit', or a "
            "kernel and a likelihood of your own, with which learning starts at once"
        )

    def _models(self) -> list[tuple[Kernel, Any, Mean]]:
        self._require_begun()
        return super()._models()

    @property
    def posterior_(self) -> Posterior:
        """The process as it is now."""
        process = self._require_begun()
        if self._posterior is None:
            self._posterior = process.posterior()
        return self._posterior

    @posterior_.setter
    def posterior_(self, posterior: Posterior) -> None:
        process = self._require_begun()
        require_posterior(posterior)
        self._process, self._posterior = process.replaced(posterior), None

    @property
    def predictive_(self) -> Predictive:
        """The process as it is now, as predictions ask it."""
        return self.posterior_

    @property
    def basis_(self) -> Any:
        """The basis vectors, rows of inputs (m, d)."""
        return self._require_begun().points

    @property
    def n_basis_(self) -> int:
        """How many basis vectors there are."""
        return self._require_begun().n_basis

    @property
    def n_seen_(self) -> int:
        """How many rows have been learned, or skipped; of those that choose the model, who wait."""
        waiting = vars(self).get("_waiting")
        if waiting is not None:
            return len(waiting["Y"])
        return self._require_begun().n_seen

    @property
    def projection_loss_(self) -> float:
        """What projections and removals have cost, in nats, added up."""
        return self._require_begun().projection_loss

    @property
    def log_evidence_(self) -> float:
        """The log predictive density of all rows, each given those before it, added up."""
        return self._require_begun().log_evidence

    def to_state(self) -> dict[str, Any]:
        """Return the parameters and the fitted attributes; the posterior is made anew."""
        state = super().to_state()
        if "_posterior" in state["fitted"]:
            state["fitted"]["_posterior"] = None
        return state
