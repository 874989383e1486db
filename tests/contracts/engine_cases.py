"""What the tests of engines have in common: networks, parameters, and the reference beside an engine."""

import numpy as np
from hypothesis import strategies as st

from manela.data.graph import Graph
from manela.engines.cpu import CpuEngine
from manela.engines.gpu.engine import GpuEngine
from manela.engines.ray.engine import RayEngine
from manela.engines.state import begin
from manela.engines.training import plan_run
from manela.kernels import reference
from manela.kernels.layout import Arcs
from manela.kernels.randomness import ROUNDS, derive, derive_key
from manela.settings.parameters import PAPER, PARAMETERS
from manela.settings.settings import check_all

BY_MESSAGES = {"cpu": CpuEngine, "gpu": GpuEngine}
"""Without the engine on a cluster, which is too slow to start for many examples; its bits are those of the CPU."""


def settings_of(engine_class, **parameters):
    """The defaults but for a random start, after which rounds have all their negatives; two workers on a cluster."""
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()} | {"start": "random"}
    if engine_class is RayEngine:
        defaults |= {"workers": 2, "n_jobs": 1}
        parameters.pop("n_jobs", None)
    return check_all({**defaults, **parameters})


def start_large(graph, wanted):
    """A random start with numbers up to 1, so that updates are large too."""
    state = begin(graph.number_of_nodes, wanted.dimensions, wanted.context, wanted.seed)
    for table in state.tables:
        table *= 2 * wanted.dimensions
    return state


def run_engine(engine_class, graph, parameters, pairs, rounds):
    """The state after some rounds of an engine from a large start."""
    wanted = settings_of(engine_class, **parameters)
    state = start_large(graph, wanted)
    schedule = plan_run(graph, wanted, pairs)
    with engine_class(graph, wanted, state) as engine:
        for _ in range(rounds):
            assert engine.advance(schedule)
        engine.collect()
    return state


def run_reference(graph, parameters, pairs, rounds, dtype=np.float64, shaken=0.0, signs=0):
    """The same by walks by the reference, in double precision or another.

    `shaken` moves each number that it starts from by such a share, up or down by the seed `signs`.
    """
    wanted = settings_of(CpuEngine, **PAPER | parameters)
    state = begin(graph.number_of_nodes, wanted.dimensions, wanted.context, wanted.seed)
    tables = [2 * wanted.dimensions * table[:, : wanted.dimensions].astype(dtype) for table in state.tables]
    signs = np.random.default_rng(signs)
    tables = [table * (1 + shaken * signs.choice([-1, 1], table.shape)).astype(dtype) for table in tables]
    schedule = plan_run(graph, wanted, pairs)
    arcs = arcs_of(graph)
    for number in range(rounds):
        tables = reference.advance(
            tables,
            arcs,
            schedule.counts(number),
            int(derive(derive_key(wanted.seed, ROUNDS), number)),
            schedule.rate(number),
            wanted.targets_by_hop,
            wanted.negatives,
        )
    return tables


def arcs_of(graph):
    aliases = reference.build_aliases(graph.indptr, graph.weights) if graph.is_weighted else ()
    return Arcs(graph.indptr, graph.indices, *aliases)


def distance(tables, others):
    """The largest difference between two lists of tables, over the columns that both have."""
    return max(np.abs(a[:, : b.shape[1]] - b).max() for a, b in zip(tables, others, strict=True))


@st.composite
def graphs(draw):
    """Random networks, stars and chains; isolated nodes, weights and arcs that are followed one way."""
    n = draw(st.integers(2, 24))
    shape = draw(st.sampled_from(["random", "star", "chain"]))
    if shape == "star":
        edges = [(0, v) for v in range(1, n)]
    elif shape == "chain":
        edges = [(v, v + 1) for v in range(n - 1)]
    else:
        node = st.integers(0, n - 1)
        edges = [(0, 1), *draw(st.lists(st.tuples(node, node), max_size=60))]
    weights = None
    if draw(st.booleans()):
        weight = st.floats(0.01, 100.0) | st.sampled_from([1e-90, 1.0, 1e90])
        weights = draw(st.lists(weight, min_size=len(edges), max_size=len(edges)))
    isolated = draw(st.integers(0, 2))
    u, v = zip(*edges, strict=True)
    return Graph.from_edges(
        u,
        v,
        weights,
        nodes=range(n + isolated),
        directed=draw(st.booleans()),
        duplicates="first" if weights is None else "sum",
    )


@st.composite
def parameters(draw):
    walks = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4).filter(lambda w: sum(w) > 0 and sum(w) % 2 == 0))
    return {
        "dimensions": draw(st.integers(1, 40)),
        "window": sum(walks) // 2,
        "ratios": tuple(count / sum(walks) for count in walks),
        "negatives": draw(st.integers(0, 10)),
        "context": draw(st.booleans()),
        "random_state": draw(st.integers(0, 2**64 - 1)),
        "learning_rate": draw(st.floats(0.001, 0.3)),
        "rounds": 3,
        "n_jobs": draw(st.integers(1, 3)),
    }


@st.composite
def message_parameters(draw):
    return {
        **draw(parameters()),
        "negative_source": draw(st.sampled_from(["nodes", "moments"])),
        "frequency": draw(st.sampled_from([0.0, 0.25, 1.0]) | st.floats(0.0, 1.0)),
    }
