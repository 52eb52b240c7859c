"""Pictures of kernels, processes and fitted models, by matplotlib.

Each function takes `ax`, the axes to draw on (new ones in a new figure without it), and returns the
axes it drew on. None calls `show`, or changes a setting of matplotlib's. They ask a model for
nothing but its public methods, so that they serve every estimator that has these.
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
