"""Probabilities of two classes along a line: hyperparameters kept, and found by the evidence."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import accuracy_score, log_loss

train_size = 50
rng = np.random.RandomState(0)
X = rng.uniform(0, 5, 100)[:, np.newaxis]
y = np.array(X[:, 0] > 2.5, dtype=int)

gp_fix = GaussianProcessClassifier(kernel=1.0 * RBF(length_scale=1.0), optimizer=None)
gp_fix.fit(X[:train_size], y[:train_size])

gp_opt = GaussianProcessClassifier(kernel=1.0 * RBF(length_scale=1.0))
gp_opt.fit(X[:train_size], y[:train_size])

X_ = np.linspace(0, 5, 100)[:, None]
amplitudes, lengths = np.meshgrid(np.logspace(0, 8, 6), np.logspace(-1, 1, 5))
landscape = [
    gp_opt.log_marginal_likelihood(np.log([a, length]))
    for a, length in zip(amplitudes.ravel(), lengths.ravel(), strict=True)
]

results = {
    "evidence before": gp_fix.log_marginal_likelihood(gp_fix.kernel_.theta),
    "evidence": gp_opt.log_marginal_likelihood(gp_opt.kernel_.theta),
    "landscape of the evidence": np.array(landscape),
    "accuracies": [
        accuracy_score(y[:train_size], gp_fix.predict(X[:train_size])),
        accuracy_score(y[:train_size], gp_opt.predict(X[:train_size])),
    ],
    "log losses": [
        log_loss(y[:train_size], gp_fix.predict_proba(X[:train_size])[:, 1]),
        log_loss(y[:train_size], gp_opt.predict_proba(X[:train_size])[:, 1]),
    ],
    "initial probabilities": gp_fix.predict_proba(X_),
    "probabilities": gp_opt.predict_proba(X_),
    "classes": gp_opt.predict(X_),
}
