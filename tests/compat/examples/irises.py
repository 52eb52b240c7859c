"""Three kinds of iris from two columns, with one length scale and with one a column."""

import numpy as np
from sklearn import datasets
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

iris = datasets.load_iris()
X = iris.data[:, :2]
y = np.array(iris.target, dtype=int)
h = 0.1

kernels = {"isotropic": 1.0 * RBF([1.0]), "anisotropic": 1.0 * RBF([1.0, 1.0])}
x_min, x_max = X[:, 0].min() - 1, X[:, 0].max() + 1
y_min, y_max = X[:, 1].min() - 1, X[:, 1].max() + 1
xx, yy = np.meshgrid(np.arange(x_min, x_max, h), np.arange(y_min, y_max, h))

results = {}
for name, kernel in kernels.items():
    model = GaussianProcessClassifier(kernel=kernel).fit(X, y)
    Z = model.predict_proba(np.c_[xx.ravel(), yy.ravel()])
    results[f"{name} probabilities"] = Z.reshape((xx.shape[0], xx.shape[1], 3))
    results[f"{name} classes"] = model.predict(X)
    results[f"{name} evidence"] = model.log_marginal_likelihood(model.kernel_.theta)
    results[f"{name} score"] = model.score(X, y)
