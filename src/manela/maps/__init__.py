"""Maps: vectors on a plane, as one HTML page that works offline.

Points are placed (`layout`), coloured and named (`colouring`), and written to a page. Answers to questions about
vectors are in `analysis`; figures of the paper in `reproduction`.
"""
