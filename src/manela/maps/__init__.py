"""Maps: vectors on a plane, as one HTML page that works offline.

Points are placed, coloured and named (`points`), and written to a page. Answers to questions about vectors are in
`analysis`; figures of the paper in `reproduction`.
"""

from typing import TYPE_CHECKING

from manela.system.exports import export

if TYPE_CHECKING:
    from manela.maps.page import write_map as write_map

__all__ = ["write_map"]
__getattr__, __dir__ = export(__name__, {"write_map": "manela.maps.page"})
