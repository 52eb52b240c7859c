"""Exclusive or, with a stationary and with a polynomial kernel."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, DotProduct

xx, yy = np.meshgrid(np.linspace(-3, 3, 50), np.linspace(-3, 3, 50))
rng = np.random.RandomState(0)
X = rng.randn(200, 2)
Y = np.logical_xor(X[:, 0] > 0, X[:, 1] > 0)

kernels = {
    "stationary": 1.0 * RBF(length_scale=1.15),
    "polynomial": 1.0 * DotProduct(sigma_0=1.0) ** 2,
}
results = {}
for name, kernel in kernels.items():
    clf = GaussianProcessClassifier(kernel=kernel).fit(X, Y)
    Z = clf.predict_proba(np.vstack((xx.ravel(), yy.ravel())).T)[:, 1]
    results[f"{name} probabilities"] = Z.reshape(xx.shape)
    results[f"{name} evidence"] = clf.log_marginal_likelihood(clf.kernel_.theta)
    results[f"{name} theta"] = clf.kernel_.theta
