"""What vectors are for: scores of labels and links, groups, odd and missing edges, tuning, and answers over HTTP.

Everything here takes networks and vectors, or learns vectors by an estimator. How they are learned is the business of
`estimators` and `engines`; nothing here reads a command line.
"""

from typing import TYPE_CHECKING

from manela.system.exports import export

if TYPE_CHECKING:
    from manela.analysis.classification import classify as classify
    from manela.analysis.classification import measure_separation as measure_separation
    from manela.analysis.edges import find_odd_edges as find_odd_edges
    from manela.analysis.edges import recommend as recommend
    from manela.analysis.groups import find_groups as find_groups
    from manela.analysis.links import hide_edges as hide_edges
    from manela.analysis.links import rank_links as rank_links
    from manela.analysis.links import sample_nodes as sample_nodes
    from manela.analysis.links import score_vectors as score_vectors

_HOMES = {
    "classify": "manela.analysis.classification",
    "find_groups": "manela.analysis.groups",
    "find_odd_edges": "manela.analysis.edges",
    "hide_edges": "manela.analysis.links",
    "measure_separation": "manela.analysis.classification",
    "rank_links": "manela.analysis.links",
    "recommend": "manela.analysis.edges",
    "sample_nodes": "manela.analysis.links",
    "score_vectors": "manela.analysis.links",
}
__all__ = [*_HOMES]
__getattr__, __dir__ = export(__name__, _HOMES)
