"""The spectral view on processors, compiled by Numba: affinities, sweeps, sums of products, and what is small.

The definition is `reference.find_view`. Sums over nodes are of whole numbers, and every other number is computed in an
order that depends on nothing but the network, so that any number of threads gets the same bits.
"""

# mypy: ignore-errors

import numpy as np
from numba import njit

from manela.kernels.cpu.tiles import TILE, average_row, multiply_tile


@njit(cache=True, nogil=True)
def add_shares(indptr, indices, weights, strengths, shares, first, last):
    """shares[v] ← Σ_u ω_uv/S_u over the neighbours u of v = first … last − 1, in their order."""
    for node in range(first, last):
        total = 0.0
        for arc in range(indptr[node], indptr[node + 1]):
            weight = 1.0
            if weights is not None:
                weight = weights[arc]
            total += weight / strengths[indices[arc]]
        shares[node] = total


@njit(cache=True, nogil=True)
def find_affinities(indptr, indices, weights, halves, affinities, squares, first, last):
    """affinities[a] ← log ω_vw − halves[v] − halves[w] for the arcs a of v = first … last − 1, (arcs,).

    squares[v] ← the sum of their squares.
    """
    for node in range(first, last):
        total = 0.0
        for arc in range(indptr[node], indptr[node + 1]):
            affinity = -(halves[node] + halves[indices[arc]])
            if weights is not None:
                affinity += np.log(weights[arc])
            affinities[arc] = affinity
            total += affinity * affinity
        squares[node] = total


@njit(cache=True, nogil=True)
def sweep(shown, indptr, indices, affinities, scale, largest, table, first, last):
    """table[v] ← scale·Σ affinities·shown[u] over the neighbours u of v = first … last − 1, clipped to ±largest."""
    low, high = np.float32(-largest), np.float32(largest)
    for node in range(first, last):
        average_row(shown, 0, indices, affinities, indptr[node], indptr[node + 1], scale, table, node)
        for k in range(table.shape[1]):
            table[node, k] = min(max(table[node, k], low), high)


_AT_ONCE = 256
"""Rows whose products are summed in double precision; their sums must stay whole numbers below 2^53."""


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def add_products(left, right, apart, unit, largest, first, last, products):
    """products[i, j] += Σ x_i·x_j over the rows x = left[v] beside right[v], v = first … last − 1, at least for j ≤ i.

    Without `right`, x is left[v]. If `apart`, only products of a number of right[v] with one of left[v] are added.
    Numbers are clipped to ±largest and rounded to multiples of `unit`; products, int64, are in units of unit². Every
    partial sum is a whole number below 2^53, so that it is exact in any order.
    """
    m = left.shape[1]
    width = len(products)
    columns = np.empty((width, _AT_ONCE + 8))  # rows of a power of two would all fall into the same lines of the cache
    for begin in range(first, last, _AT_ONCE):
        size = min(_AT_ONCE, last - begin)
        for row in range(size):
            for k in range(m):
                columns[k, row] = np.rint(min(max(np.float64(left[begin + row, k]), -largest), largest) / unit)
            if right is not None:
                for k in range(width - m):
                    columns[m + k, row] = np.rint(min(max(np.float64(right[begin + row, k]), -largest), largest) / unit)
        for i in range(m if apart else 0, width, 4):
            for j in range(0, m if apart else i + 1, 4):
                # four times four sums at once, for which eight numbers are read
                t00 = t01 = t02 = t03 = t10 = t11 = t12 = t13 = t20 = t21 = t22 = t23 = t30 = t31 = t32 = t33 = 0.0
                for row in range(size):
                    x0, x1, x2, x3 = columns[i, row], columns[i + 1, row], columns[i + 2, row], columns[i + 3, row]
                    y0, y1, y2, y3 = columns[j, row], columns[j + 1, row], columns[j + 2, row], columns[j + 3, row]
                    t00 += x0 * y0
                    t01 += x0 * y1
                    t02 += x0 * y2
                    t03 += x0 * y3
                    t10 += x1 * y0
                    t11 += x1 * y1
                    t12 += x1 * y2
                    t13 += x1 * y3
                    t20 += x2 * y0
                    t21 += x2 * y1
                    t22 += x2 * y2
                    t23 += x2 * y3
                    t30 += x3 * y0
                    t31 += x3 * y1
                    t32 += x3 * y2
                    t33 += x3 * y3
                products[i + 0, j + 0] += np.int64(t00)
                products[i + 0, j + 1] += np.int64(t01)
                products[i + 0, j + 2] += np.int64(t02)
                products[i + 0, j + 3] += np.int64(t03)
                products[i + 1, j + 0] += np.int64(t10)
                products[i + 1, j + 1] += np.int64(t11)
                products[i + 1, j + 2] += np.int64(t12)
                products[i + 1, j + 3] += np.int64(t13)
                products[i + 2, j + 0] += np.int64(t20)
                products[i + 2, j + 1] += np.int64(t21)
                products[i + 2, j + 2] += np.int64(t22)
                products[i + 2, j + 3] += np.int64(t23)
                products[i + 3, j + 0] += np.int64(t30)
                products[i + 3, j + 1] += np.int64(t31)
                products[i + 3, j + 2] += np.int64(t32)
                products[i + 3, j + 3] += np.int64(t33)


@njit(cache=True, nogil=True)
def multiply(left, right, matrix, first, last, target):
    """target[v] ← (left[v] beside right[v])·matrix for v = first … last − 1; matrix is (1, columns, m), m of target.

    `target` may be `left`. Without `right`, only left[v] is multiplied.
    """
    m = left.shape[1]
    x = np.zeros((TILE, matrix.shape[1]), np.float32)
    products = np.empty((TILE, matrix.shape[2]), np.float32)
    for begin in range(first, last, TILE):
        size = min(TILE, last - begin)
        for i in range(size):
            for k in range(m):
                x[i, k] = left[begin + i, k]
            if right is not None:
                for k in range(right.shape[1]):
                    x[i, m + k] = right[begin + i, k]
        multiply_tile(x, matrix, 0, products)
        for i in range(size):
            for k in range(target.shape[1]):
                target[begin + i, k] = products[i, k]


@njit(cache=True, nogil=True)
def multiply_small(left, right, product):
    """product ← left·right in double precision, in an order that no library decides."""
    product[:] = 0.0
    for i in range(len(left)):
        for k in range(left.shape[1]):
            factor = left[i, k]
            for j in range(right.shape[1]):
                product[i, j] += factor * right[k, j]


@njit(cache=True, nogil=True)
def invert(lower, inverse):
    """inverse ← the inverse of a lower triangular matrix, (m, m); rows and columns of a zero on the diagonal stay 0."""
    m = len(lower)
    for i in range(m):
        if lower[i, i] > 0.0:
            for k in range(i):
                factor = lower[i, k]
                if factor != 0.0:
                    for j in range(k + 1):
                        inverse[i, j] -= factor * inverse[k, j]
            for j in range(i):
                inverse[i, j] /= lower[i, i]
            inverse[i, i] = 1.0 / lower[i, i]


@njit(cache=True, nogil=True)
def decompose(matrix, values, vectors):
    """values ← the eigenvalues of a symmetric matrix, (m, m), and vectors[k] ← the eigenvector of values[k].

    The matrix is overwritten. It is reduced to three diagonals by Householder reflections, and these by QR steps with
    Wilkinson's shift. Returns whether all steps converged.
    """
    m = len(matrix)
    beside = np.zeros(m)
    reduce(matrix, values, beside, vectors)
    size = 0.0
    for k in range(m):
        size = max(size, abs(values[k]) + abs(beside[k]))
    least = size * _PRECISION
    for first in range(m):
        for step in range(_MOST_STEPS + 1):
            last = first
            while last < m - 1:
                if abs(beside[last]) <= least:
                    break
                last += 1
            if last == first:
                break
            if step == _MOST_STEPS:
                return False
            chase(values, beside, vectors, first, last)
    return True


_PRECISION = 2.0**-53
"""Numbers beside the diagonal that count as 0, relative to the largest; larger is less precise."""
_NOTHING = 2.0**-200
"""Columns that are not reflected, relative to the largest number; smaller ones underflow."""
_MOST_STEPS = 60
"""Most QR steps for one eigenvalue; a handful is usual."""


@njit(cache=True, nogil=True)
def reduce(matrix, values, beside, vectors):
    """Reduce a symmetric matrix to its diagonal, values, and the numbers beside it: vectors·matrix·vectorsᵀ."""
    m = len(matrix)
    factors, largest = np.zeros(m), 0.0
    for i in range(m):
        for j in range(m):
            largest = max(largest, abs(matrix[i, j]))
    for k in range(m - 2):
        square = 0.0
        for i in range(k + 1, m):
            square += matrix[i, k] * matrix[i, k]
        length = np.sqrt(square)
        if length <= largest * _NOTHING:
            continue
        head = matrix[k + 1, k]
        reflected = -length if head > 0.0 else length
        # the reflection I − factor·u·uᵀ maps the column to (reflected, 0, …, 0); u is kept in its place
        matrix[k + 1, k] = head - reflected
        factors[k] = 1.0 / (square - head * reflected)
        product = np.zeros(m)
        for i in range(k + 1, m):
            u = matrix[i, k]
            for j in range(k + 1, m):
                product[j] += matrix[i, j] * u
        mixed = 0.0
        for i in range(k + 1, m):
            product[i] *= factors[k]
            mixed += product[i] * matrix[i, k]
        mixed *= 0.5 * factors[k]
        for i in range(k + 1, m):
            product[i] -= mixed * matrix[i, k]
        column = matrix[:, k].copy()
        for i in range(k + 1, m):
            for j in range(k + 1, m):
                matrix[i, j] -= column[i] * product[j] + product[i] * column[j]
        beside[k] = reflected
    for k in range(m):
        values[k] = matrix[k, k]
    if m > 1:
        beside[m - 2] = matrix[m - 1, m - 2]
    for i in range(m):
        for j in range(m):
            vectors[i, j] = 1.0 if i == j else 0.0
    for k in range(m - 3, -1, -1):
        column = matrix[:, k].copy()
        for i in range(k + 1, m):
            total = 0.0
            for j in range(k + 1, m):
                total += vectors[i, j] * column[j]
            total *= factors[k]
            for j in range(k + 1, m):
                vectors[i, j] -= total * column[j]


@njit(cache=True, nogil=True)
def chase(values, beside, vectors, first, last):
    """Do a QR step with Wilkinson's shift on the rows first … last of three diagonals; vectors turn with them."""
    # the shift is the eigenvalue of the first two rows that is nearer to the first number
    half = (values[first + 1] - values[first]) / (2.0 * beside[first])
    root = np.hypot(half, 1.0)
    shift = values[first] - beside[first] / (half + (root if half >= 0.0 else -root))
    sine = cosine = 1.0
    moved = 0.0
    bulge = values[last] - shift
    for i in range(last - 1, first - 1, -1):
        above, near = sine * beside[i], cosine * beside[i]
        length = np.hypot(above, bulge)
        beside[i + 1] = length
        if length == 0.0:
            values[i + 1] -= moved
            beside[last] = 0.0
            return
        sine, cosine = above / length, bulge / length
        bulge = values[i + 1] - moved
        turned = (values[i] - bulge) * sine + 2.0 * cosine * near
        moved = sine * turned
        values[i + 1] = bulge + moved
        bulge = cosine * turned - near
        for k in range(vectors.shape[1]):
            upper, lower = vectors[i, k], vectors[i + 1, k]
            vectors[i + 1, k] = sine * upper + cosine * lower
            vectors[i, k] = cosine * upper - sine * lower
    values[first] -= moved
    beside[first] = bulge
    beside[last] = 0.0
