"""Sources of edges: mail, the fediverse, databases, key rings and RDF, with a module for each.

A `Source` yields edges in batches, and may keep its position in an `ImportState`. A source only reads where it reads
from. Files of networks are in `formats`; a host's edges come in by `hosts.folder.edges`.
"""

from typing import TYPE_CHECKING

from manela.system.exports import export

if TYPE_CHECKING:
    from manela.sources.gathering import gather_graph as gather_graph
    from manela.sources.sql import SqlSource as SqlSource

__all__ = ["SqlSource", "gather_graph"]
__getattr__, __dir__ = export(__name__, {"SqlSource": "manela.sources.sql", "gather_graph": "manela.sources.gathering"})
