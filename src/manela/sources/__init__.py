"""Sources of networks: each module reads edges from one kind of place."""

from typing import TYPE_CHECKING

from manela.system.exports import export

if TYPE_CHECKING:
    from manela.sources.gathering import gather_graph as gather_graph
    from manela.sources.sql import SqlSource as SqlSource

__all__ = ["SqlSource", "gather_graph"]
__getattr__, __dir__ = export(__name__, {"SqlSource": "manela.sources.sql", "gather_graph": "manela.sources.gathering"})
