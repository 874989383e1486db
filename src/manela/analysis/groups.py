"""Groups: clusters nodes by the directions of their vectors, and scores the groups on hidden nodes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manela.errors import ParameterError
from manela.kernels.layout import RowNumbers, Vectors, normalise_rows
from manela.kernels.randomness import seed_of

METHODS = ("kmeans", "hdbscan")
_SAMPLE, _SEARCHED = 10_000, 5_000
"""Sample sizes for finding groups and for finding their number; larger ones find smaller groups but take longer."""
_MOST_SCORED = 20_000
"""Hidden nodes that are scored; more take longer, and change only the third digit of the score."""
_FEWEST_TO_HIDE = 50
"""With fewer nodes none is hidden, as a fifth would be too few for a score; if larger, fewer networks get a score."""
_MOST_GROUPS = 400
"""The largest number of groups that is tried by default; larger values take longer."""
_STEPS = 3
"""How often the search for the number of groups narrows, each time about fourfold; more take longer."""
_RESTARTS = 3
"""Starts of k-means, of which the best is used; more take longer."""
_ROUNDS, _LAST_ROUNDS = 20, 5
"""Most iterations of k-means on a sample, and then on all nodes; more take longer and change little."""
_BLOCK = 8192
"""Nodes that are compared with all centres at once; more take more memory."""
_AXES = 32
"""Principal axes for HDBSCAN; with more of them all distances become alike."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of nodes, and how far they can be trusted.

    Attributes
    ----------
    labels : array of int64, shape (n,)
        The group of each node: 0 for the largest group, 1 for the next, and −1 for nodes in no group.
    count : int
        The number of groups.
    sizes : array of int64, shape (count,)
        The number of nodes in each group, largest first.
    silhouette : float
        The mean silhouette by cosine, −1 to 1, of nodes that were hidden while groups were found: how much nearer a
        hidden node is to the known nodes of its own group than to those of the next. NaN if there were too few nodes.
    stability : float
        The adjusted Rand index, 0 for chance and 1 for identical, between two groupings of the hidden nodes, each found
        from one half of the known nodes. NaN if there were too few nodes.
    hidden : int
        The number of nodes that were hidden and scored.
    method : str
        "kmeans" or "hdbscan".
    """

    labels: RowNumbers
    count: int
    sizes: RowNumbers
    silhouette: float
    stability: float
    hidden: int
    method: str


def find_groups(
    vectors: npt.ArrayLike, count: int | None = None, method: str = "kmeans", random_state: Any = 0
) -> Groups:
    """Find groups of nodes from the directions of their vectors.

    A fifth of the nodes is hidden, and groups are found from the others. Then every node, hidden or not, joins the
    nearest group, so the scores are those of the returned groups. Nodes with a zero vector have no direction and are in
    no group.

    Parameters
    ----------
    vectors : array, shape (n, m)
    count : int, optional
        How many groups k-means finds; by default the number up to about √n with the largest silhouette.
    method : {"kmeans", "hdbscan"}, default="kmeans"
        k-means puts each node in a group; HDBSCAN finds dense regions and their number, and leaves out other nodes.
    random_state : int, optional
        The seed; the same seed gives the same groups.

    Returns
    -------
    Groups

    Examples
    --------
    >>> angles = np.concatenate([np.linspace(0, 0.2, 40), np.linspace(1.5, 1.7, 30), np.linspace(3, 3.2, 30)])
    >>> groups = find_groups(np.column_stack([np.cos(angles), np.sin(angles)]))
    >>> groups.count, groups.sizes.tolist(), round(groups.stability, 2)
    (3, [40, 30, 30], 1.0)
    """
    if method not in METHODS:
        raise ParameterError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    directions, rows, nodes = _find_directions(vectors)
    _check_count(count, method, directions)
    rng = np.random.default_rng(seed_of(random_state))
    order = rng.permutation(len(directions))
    hidden, known = _split(order, count)
    if method == "kmeans":
        count = _choose_count(directions[known], rng) if count is None else int(count)
    grouping = _group(directions[known], count, rng)
    joined = grouping.assign(directions)

    scored, halves = hidden[:_MOST_SCORED], np.array_split(known, 2)
    silhouette = stability = float("nan")
    if len(scored):
        silhouette = measure_silhouette(directions[scored], joined[scored], directions[known], joined[known])
        stability = _measure_stability(directions, scored, halves, count, rng)
    labels = np.full(nodes, -1, dtype=np.int64)
    labels[rows], sizes = _number_by_size(joined)
    return Groups(labels, len(sizes), sizes, silhouette, stability, len(scored), method)


def compare_with_labels(groups: Groups, truth: npt.NDArray[np.bool_]) -> tuple[float, int]:
    """Return the adjusted mutual information of groups and labels, 0 for chance and 1 for identical.

    `truth`, (n, labels), says which node has which label. Only nodes with exactly one label count, and their number is
    returned too. Those in no group count as one group.
    """
    from sklearn.metrics import adjusted_mutual_info_score

    single = np.flatnonzero(truth.sum(axis=1) == 1)
    if len(single) == 0:
        return float("nan"), 0
    score = adjusted_mutual_info_score(truth[single].argmax(axis=1), groups.labels[single])
    return float(score), len(single)


class _Grouping(Protocol):
    def assign(self, directions: Vectors) -> RowNumbers:
        """Return the group of each node, −1 for none."""


@dataclass(frozen=True)
class _Centres:
    """Groups of k-means: each node is in the group of the nearest centre."""

    centres: Vectors

    def assign(self, directions: Vectors) -> RowNumbers:
        """Return the group of the nearest centre for each vector."""
        blocks = range(0, len(directions), _BLOCK)
        nearest = [(directions[first : first + _BLOCK] @ self.centres.T).argmax(axis=1) for first in blocks]
        return np.concatenate(nearest, dtype=np.int64)


@dataclass(frozen=True)
class _Regions:
    """Groups of HDBSCAN: each node is in the group of the nearest node in the sample that was clustered."""

    searched: Vectors
    groups: RowNumbers

    def assign(self, directions: Vectors) -> RowNumbers:
        """Return the group of the nearest known vector for each vector."""
        from manela.data.nearest import find_nearest

        nearest, _ = find_nearest(self.searched, directions, 1)
        assigned: RowNumbers = self.groups[nearest[:, 0]]
        return assigned


def _find_directions(vectors: npt.ArrayLike) -> tuple[Vectors, RowNumbers, int]:
    """Return the unit vectors of the nodes that have a direction, their rows, and the number of all nodes."""
    try:
        array = np.asarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"vectors must be numbers, a row for each node: {error}") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise ParameterError(f"vectors must have a row for each node and a column or more, got the shape {array.shape}")
    if len(array) < 2:
        raise ParameterError(f"groups need at least 2 nodes, got {len(array)}")
    if not np.isfinite(array).all():
        raise ParameterError("vectors must be finite numbers, got nan or infinity")
    rows = np.flatnonzero(array.any(axis=1))
    if len(rows) < 2:
        raise ParameterError(f"groups need at least 2 nodes with a vector other than zero, got {len(rows)}")
    # divide by the largest number first, as a norm may be beyond single precision
    return normalise_rows(array[rows] / np.abs(array[rows]).max(axis=1, keepdims=True)), rows, len(array)


def _check_count(count: Any, method: str, directions: Vectors) -> None:
    if count is None:
        return
    if method != "kmeans":
        raise ParameterError(f"count is for kmeans; {method} finds by itself how many groups there are")
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ParameterError(f"count must be a whole number of at least 1, got {count!r}")
    if count > len(directions):
        raise ParameterError(
            f"count must be at most the number of nodes with a direction, {len(directions):,}, got {count:,}"
        )
    distinct = _count_distinct(directions)
    if count > distinct:
        raise ParameterError(f"count must be at most the number of different directions, {distinct:,}, got {count:,}")


def _count_distinct(directions: Vectors) -> int:
    return len({direction.tobytes() for direction in directions})


def _split(order: RowNumbers, count: int | None) -> tuple[RowNumbers, RowNumbers]:
    """Return hidden and known nodes; none is hidden if too few would be left to find groups from."""
    size = len(order) // 5
    if len(order) < _FEWEST_TO_HIDE or (count is not None and count > (len(order) - size) // 2):
        size = 0
    return order[:size], order[size:]


def _group(known: Vectors, count: int | None, rng: np.random.Generator) -> _Grouping:
    """Find groups of these nodes: `count` groups by k-means, or by HDBSCAN if `count` is None."""
    return _find_regions(known) if count is None else _Centres(find_centres(known, count, _RESTARTS, rng))


def _choose_count(known: Vectors, rng: np.random.Generator) -> int:
    """Return the number of groups with the largest silhouette on a sample, searched coarsely and then more finely."""
    sample = known[:_SEARCHED]
    most = int(min(_MOST_GROUPS, max(2, np.sqrt(len(known))), _count_distinct(sample)))
    if most < 2:
        return 1
    scores: dict[int, float] = {}
    counts = sorted({*range(2, min(most, 8) + 1), *np.geomspace(2, most, 20).round().astype(int).tolist()})
    for restarts in (1, *[2] * _STEPS):
        for count in counts:
            if count not in scores:
                labels = _Centres(find_centres(sample, count, restarts, rng)).assign(sample)
                scores[count] = measure_silhouette(sample, labels)
        tried = sorted(scores)
        position = tried.index(max(tried, key=scores.__getitem__))
        low, high = tried[max(0, position - 1)], tried[min(len(tried) - 1, position + 1)]
        counts = np.unique(np.linspace(low, high, 9).round().astype(int)).tolist()
    return tried[position]


def find_centres(known: Vectors, count: int, restarts: int, rng: np.random.Generator) -> Vectors:
    """Return centres of k-means: the best of several starts on a sample, then refined on all nodes."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    sample = known[: max(_SAMPLE, 10 * count)]
    random_state = int(rng.integers(2**32))
    # several threads add up in an order that changes the bits, and gain nothing on so few nodes
    with threadpool_limits(1, user_api="openmp"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of nodes that coincide
        found = KMeans(count, n_init=restarts, max_iter=_ROUNDS, random_state=random_state).fit(sample)
        if len(sample) < len(known):
            found = KMeans(count, init=found.cluster_centers_, n_init=1, max_iter=_LAST_ROUNDS).fit(known)
    return normalise_rows(found.cluster_centers_)


def _add_up(directions: Vectors, labels: RowNumbers, count: int) -> npt.NDArray[np.float64]:
    """Return the sum of the directions of each group, always added in the same order."""
    import scipy.sparse as sp

    size = len(labels)
    members = sp.csr_array((np.ones(size), (labels, np.arange(size))), shape=(count, size))
    sums: npt.NDArray[np.float64] = members @ directions.astype(np.float64)
    return sums


def _find_regions(known: Vectors) -> _Regions:
    """Find dense regions of a sample by HDBSCAN, along the principal axes."""
    from sklearn.cluster import HDBSCAN

    sample = known[:_SAMPLE]
    if len(sample) < 5:
        raise ParameterError(f"hdbscan needs at least 5 nodes with a direction, got {len(sample)}")
    centred = (sample - sample.mean(axis=0)).astype(np.float64)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, -_AXES:]
    smallest = max(5, len(sample) // 200)
    groups = HDBSCAN(min_cluster_size=min(smallest, len(sample)), copy=True).fit_predict(centred @ axes)
    return _Regions(sample, groups.astype(np.int64))


def measure_silhouette(
    directions: Vectors, labels: RowNumbers, known: Vectors | None = None, known_labels: RowNumbers | None = None
) -> float:
    """Return the mean silhouette by cosine of nodes against known nodes, or against each other by default.

    The mean cosine with a group is the product with the group's mean, so pairs of nodes need not be compared: for 5,000
    nodes that is twenty times as fast as scikit-learn's silhouette_score. NaN if there are fewer than two groups.
    """
    among, among_labels = (directions, labels) if known is None or known_labels is None else (known, known_labels)
    inside = among_labels >= 0
    count = int(among_labels.max(initial=-1)) + 1
    sizes = np.bincount(among_labels[inside], minlength=count)
    scored = np.flatnonzero(labels >= 0)
    if np.count_nonzero(sizes) < 2 or len(scored) == 0:
        return float("nan")
    sums = _add_up(among[inside], among_labels[inside], count)
    products = directions[scored] @ sums.T.astype(np.float32)
    at = np.arange(len(scored)), labels[scored]
    itself = 1 if known is None else 0
    others = sizes[labels[scored]] - itself
    own = 1.0 - (products[at] - itself) / np.maximum(others, 1)
    distances = np.where(sizes > 0, 1.0 - products / np.maximum(sizes, 1), np.inf)
    distances[at] = np.inf
    own, nearest = np.maximum(own, 0.0), np.maximum(distances.min(axis=1), 0.0)
    silhouettes = np.where(others > 0, (nearest - own) / np.maximum(np.maximum(nearest, own), 1e-12), 0.0)
    return float(silhouettes.mean())


def _measure_stability(
    directions: Vectors, scored: RowNumbers, halves: list[RowNumbers], count: int | None, rng: np.random.Generator
) -> float:
    """Return how well two groupings of the hidden nodes agree that were found from disjoint halves of known nodes."""
    from sklearn.metrics import adjusted_rand_score

    first, second = (_group(directions[half], count, rng).assign(directions[scored]) for half in halves)
    return float(adjusted_rand_score(first, second))


def _number_by_size(labels: RowNumbers) -> tuple[RowNumbers, RowNumbers]:
    """Renumber groups by size, largest first, without empty groups; return the labels and the sizes."""
    sizes = np.bincount(labels[labels >= 0])
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] > 0]
    numbers = np.full(len(sizes) + 1, -1, dtype=np.int64)  # one more, so that the label −1 stays −1
    numbers[order] = np.arange(len(order))
    return numbers[labels], sizes[order].astype(np.int64)
