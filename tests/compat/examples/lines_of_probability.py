"""Lines of equal probability around eight points, with a kernel that knows quadratics."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct

lim = 8


def g(x):
    return 5.0 - x[:, 1] - 0.5 * x[:, 0] ** 2.0


X = np.array(
    [
        [-4.61611719, -6.00099547],
        [4.10469096, 5.32782448],
        [0.00000000, -0.50000000],
        [-6.17289014, -4.6984743],
        [1.3109306, -6.93271427],
        [-5.03823144, 3.10584743],
        [-2.87600388, 6.74310541],
        [5.21301203, 4.26386883],
    ]
)
y = np.array(g(X) > 0, dtype=int)

kernel = ConstantKernel(0.1, (1e-5, np.inf)) * DotProduct(sigma_0=0.1) ** 2
gp = GaussianProcessClassifier(kernel=kernel)
gp.fit(X, y)

res = 50
x1, x2 = np.meshgrid(np.linspace(-lim, lim, res), np.linspace(-lim, lim, res))
xx = np.vstack([x1.reshape(x1.size), x2.reshape(x2.size)]).T
results = {
    "evidence": gp.log_marginal_likelihood_value_,
    "probabilities": gp.predict_proba(xx)[:, 1].reshape((res, res)),
}
