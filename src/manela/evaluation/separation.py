"""Measures how clearly vectors separate communities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.metrics import silhouette_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestCentroid


@dataclass(frozen=True)
class Separation:
    """Silhouette, from −1 to 1, and the share of nodes nearest to the centre of their own community."""

    silhouette: float
    accuracy: float


def measure_separation(
    vectors: npt.NDArray[np.floating], communities: npt.NDArray[np.integer], metric: str = "cosine"
) -> Separation:
    """Score vectors, shape (n, m), against communities, shape (n,); centres are computed without the tested nodes.

    The silhouette uses cosine distances, or another metric of scikit-learn, such as "euclidean" for points on a plane.
    """
    nearest = cross_val_predict(NearestCentroid(), vectors, communities, cv=10)
    return Separation(
        silhouette=float(silhouette_score(vectors, communities, metric=metric)),
        accuracy=float(np.mean(nearest == communities)),
    )
