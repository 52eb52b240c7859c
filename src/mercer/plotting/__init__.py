"""Pictures of kernels, processes and fitted models, by matplotlib.

Each function takes `ax`, the axes to draw on (new ones in a new figure without it), and returns the
axes it drew on. None calls `show`, or changes a setting of matplotlib's. Most need no more of a
model than ``predict(X, return_std=True)``, so that they serve scikit-learn's regressors too. Where
a model has more they use it: its intervals, samples and leave-one-out predictions, its kernel and
history, and the training rows that it keeps.
"""

from mercer.plotting.calibration import plot_calibration, plot_pit
from mercer.plotting.conditional import plot_conditional
from mercer.plotting.fits import plot_fit
from mercer.plotting.history import plot_history
from mercer.plotting.relevance import plot_relevance
from mercer.plotting.residuals import plot_residuals
from mercer.plotting.samples import plot_samples
from mercer.plotting.spectrum import plot_eigenfunctions, plot_eigenvalues

__all__ = [
    "plot_calibration",
    "plot_conditional",
    "plot_eigenfunctions",
    "plot_eigenvalues",
    "plot_fit",
    "plot_history",
    "plot_pit",
    "plot_relevance",
    "plot_residuals",
    "plot_samples",
]
