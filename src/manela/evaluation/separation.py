"""How clearly communities stand apart in vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sklearn.metrics import silhouette_score
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestCentroid


@dataclass(frozen=True)
class Separation:
    """Silhouette, from −1 to 1, and the share of nodes that are nearest to the centre of their own community."""

    silhouette: float
    accuracy: float


def measure_separation(
    vectors: npt.NDArray[np.floating], communities: npt.NDArray[np.integer], metric: str = "cosine"
) -> Separation:
    """Score vectors, shape (n, m), against a community for each; a node has no part in the centre it is judged by.

    The silhouette is by cosine, or by another metric of scikit-learn: "euclidean" for points on a plane.
    """
    nearest = cross_val_predict(NearestCentroid(), vectors, communities, cv=10)
    return Separation(
        silhouette=float(silhouette_score(vectors, communities, metric=metric)),
        accuracy=float(np.mean(nearest == communities)),
    )
