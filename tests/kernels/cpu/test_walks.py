import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from manela.data.graph import Graph
from manela.engines.rounds.neighbours import prepare_arcs
from manela.kernels import reference
from manela.kernels.cpu import walks as cpu
from manela.kernels.layout import pad


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=60))
def test_alias_tables_are_those_of_the_reference(weights):
    graph = Graph.from_edges([0] * len(weights), range(1, len(weights) + 1), weights)
    _, _, thresholds, aliases = prepare_arcs(graph)
    if graph.is_weighted:
        wanted = reference.build_aliases(graph.indptr, graph.weights)
        np.testing.assert_array_equal(thresholds, wanted[0])
        np.testing.assert_array_equal(aliases, wanted[1])


def test_the_inner_loops_are_vector_instructions():
    """Fused multiply-adds on whole registers, where this processor has them, and none on single floats."""
    arrays = np.zeros((4, 32), dtype=np.float32)
    graph = Graph.from_edges([0, 1], [1, 2], nodes=range(4))
    nodes, counts, walks = np.arange(1), np.ones(1, dtype=np.int64), np.array([2], dtype=np.int64)
    made = np.zeros(1, dtype=np.int64)
    arguments = (nodes, counts, arrays, arrays, arrays[:1].copy(), made, prepare_arcs(graph))
    compiled = njit(cpu.advance.py_func)
    compiled(*arguments, np.uint64(1), np.float32(0.1), walks, 1, np.zeros(1, dtype=np.uint8))
    assembly = "\n".join(compiled.inspect_asm().values())
    assert "fmaf" not in assembly or "vfmadd" not in assembly
    if "vfmadd" in assembly:
        lines = [line for line in assembly.splitlines() if "vfmadd" in line]
        assert sum("ymm" in line or "zmm" in line for line in lines) >= 16
        assert not any("ss\t" in line for line in lines)


def test_padding_is_to_whole_registers():
    assert [pad(m) for m in (1, 16, 17, 128, 129)] == [16, 16, 32, 128, 144]
