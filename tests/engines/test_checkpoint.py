import numpy as np
import pytest

from manela import Manela
from manela.engines import checkpoint as checkpoints
from manela.engines.checkpoint import Checkpoint
from manela.engines.training import train
from manela.errors import CheckpointError, OutputError
from manela.formats.datasets import stochastic_block_model
from manela.settings.parameters import PAPER, PARAMETERS
from manela.settings.settings import check_all
from manela.system.arrays import read_arrays, write_arrays


class Halt(Exception):
    """Ends a run in its middle."""


def settings(**parameters):
    defaults = {name: parameter.default for name, parameter in PARAMETERS.items()}
    return check_all({**defaults, "dimensions": 12, "rounds": 40, "pairs": 400_000, **parameters})


@pytest.fixture(scope="module")
def graph():
    return stochastic_block_model(nodes=150, seed=2)[0]


def identify(graph, **parameters):
    return {**settings(**parameters).identity(), "graph": graph.digest}


def halt_at(number, sweeping=False):
    """Saving often, a run that ends after some rounds were saved, or some sweeps."""

    class Halting(Checkpoint):
        saved = 0

        def save(self, state, *arguments):
            super().save(state, *arguments)
            type(self).saved += (state.sweeping is not None) if sweeping else state.round > 0
            if self.saved == number:
                raise Halt

    return Halting


def interrupt(graph, folder, after=7, sweeping=False, **parameters):
    with pytest.raises(Halt):
        train(graph, settings(**parameters), checkpoint=halt_at(after, sweeping)(folder, every=0))


@pytest.mark.parametrize("after", [1, 3, 7])
@pytest.mark.parametrize("views", ["both", "rounds", "spectral"])
def test_a_run_that_was_killed_in_its_sweeps_has_the_same_bits(graph, tmp_path, after, views):
    parameters = {"views": views} if views != "spectral" else {"views": views, "pairs": None, "rounds": None}
    whole = train(graph, settings(**parameters))
    interrupt(graph, tmp_path, after=after, sweeping=True, **parameters)
    state, _ = Checkpoint(tmp_path).load(identify(graph, **parameters), 150)
    assert (state.sweeping.number, state.swept, state.round) == (after, False, 0)
    assert_same(train(graph, settings(**parameters), checkpoint=Checkpoint(tmp_path, resume=True)), whole)


def test_a_run_with_three_views_that_was_killed_has_the_same_bits(graph, tmp_path):
    """In the rounds of its context vectors, and in those that come after them."""
    parameters = {"views": "all", "pairs": None, "rounds": None}
    whole = train(graph, settings(**parameters))
    for rounds_of_context in (True, False):
        folder = tmp_path / str(rounds_of_context)

        class Halting(Checkpoint):
            saved = 0

            def save(self, state, *arguments, of_context=rounds_of_context):
                super().save(state, *arguments)
                type(self).saved += state.round > 0 and (state.context is not None) == of_context
                if self.saved == 3:
                    raise Halt

        with pytest.raises(Halt):
            train(graph, settings(**parameters), checkpoint=Halting(folder, every=0))
        assert (folder / "context" / "checkpoint.npz").exists()
        assert (folder / "checkpoint.npz").exists() != rounds_of_context
        with pytest.raises(CheckpointError, match=r"checkpoint\.npz: holds a run; pass resume=True"):
            train(graph, settings(**parameters), checkpoint=Checkpoint(folder))
        checkpoint = Checkpoint(folder, resume=True)
        assert_same(train(graph, settings(**parameters), checkpoint=checkpoint), whole)
        checkpoint.remove()
        assert not list(folder.iterdir())


def test_a_run_with_another_start_that_was_killed_in_a_round_has_its_view_again(graph, tmp_path):
    parameters = {"start": "random", "pairs": None, "rounds": None}
    whole = train(graph, settings(**parameters))
    interrupt(graph, tmp_path, after=3, **parameters)
    assert_same(train(graph, settings(**parameters), checkpoint=Checkpoint(tmp_path, resume=True)), whole)


@pytest.mark.parametrize("parameters", [PAPER, PAPER | {"context": True}, {}, {"context": True}])
def test_a_resumed_run_has_the_same_bits(graph, tmp_path, parameters):
    whole = train(graph, settings(**parameters))
    interrupt(graph, tmp_path, **parameters)
    resumed = train(graph, settings(**parameters, n_jobs=1), checkpoint=Checkpoint(tmp_path, resume=True))
    assert resumed.state.round == 40
    assert_same(resumed, whole)


def assert_same(run, whole):
    assert (run.state.round, run.state.pairs, run.state.falls_at) == (
        whole.state.round, whole.state.pairs, whole.state.falls_at
    )  # fmt: skip
    assert (run.pairs, run.schedule.rounds) == (whole.pairs, whole.schedule.rounds)
    for table, wanted in zip(run.state.tables, whole.state.tables, strict=True):
        np.testing.assert_array_equal(table, wanted)


@pytest.mark.parametrize("context", [False, True])
def test_a_run_whose_length_is_open_is_resumed_before_and_after_its_rate_began_to_fall(graph, tmp_path, context):
    """Without a budget, the vectors say when the rate falls, and with that how many rounds there are."""
    parameters = {"pairs": None, "rounds": None, "context": context, "start": "random"}
    whole = train(graph, settings(**parameters))
    falls_at = whole.state.falls_at
    assert 1 < falls_at < whole.state.round - 1
    for after in (1, falls_at - 1, falls_at, falls_at + 1, whole.state.round - 1):
        folder = tmp_path / str(after)
        interrupt(graph, folder, after=after, **parameters)
        saved = Checkpoint(folder, resume=True).load(identify(graph, **parameters), 150)
        assert saved[0].round == after
        assert saved[0].falls_at == (falls_at if after > falls_at else None)
        assert saved[1] is None
        assert_same(train(graph, settings(**parameters), checkpoint=Checkpoint(folder, resume=True)), whole)


def test_a_run_that_was_killed_again_and_again_has_the_same_bits(graph, tmp_path):
    parameters = {"pairs": None, "rounds": None}
    whole = train(graph, settings(**parameters))
    interrupt(graph, tmp_path, after=1, **parameters)
    for _ in range(1, whole.state.round - 1):
        with pytest.raises(Halt):
            train(graph, settings(**parameters), checkpoint=halt_at(1)(tmp_path, every=0, resume=True))
    assert_same(train(graph, settings(**parameters), checkpoint=Checkpoint(tmp_path, resume=True)), whole)


@pytest.mark.parametrize("edition", [PAPER, {}])
def test_a_run_with_a_running_time_keeps_its_budget_when_it_is_resumed(graph, tmp_path, edition, monkeypatch):
    """How many pairs fit into a time is measured once, and saved."""
    monkeypatch.setattr("manela.engines.training._measure_budget", lambda *_: 300_000)
    parameters = {**edition, "pairs": None, "rounds": 20, "max_seconds": 600.0}
    whole = train(graph, settings(**parameters))
    assert whole.pairs == 300_000
    interrupt(graph, tmp_path, **parameters)
    monkeypatch.setattr("manela.engines.training._measure_budget", lambda *_: 1 / 0)
    assert_same(train(graph, settings(**parameters), checkpoint=Checkpoint(tmp_path, resume=True)), whole)


def test_vectors_are_saved_before_they_are_smoothed(graph, tmp_path):
    """A run that is resumed when it was done is smoothed once."""
    whole = train(graph, settings(), checkpoint=Checkpoint(tmp_path))
    again = train(graph, settings(), checkpoint=Checkpoint(tmp_path, resume=True))
    assert_same(again, whole)
    saved, _ = Checkpoint(tmp_path).load(identify(graph), 150)
    assert saved.round == whole.state.round
    assert saved.view is not None
    assert not np.array_equal(saved.vectors, whole.state.vectors)


def test_a_checkpoint_of_another_version_is_refused_in_one_line(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "VERSION", 1)
    interrupt(graph, tmp_path)
    monkeypatch.undo()
    with pytest.raises(CheckpointError) as caught:
        train(graph, settings(), checkpoint=Checkpoint(tmp_path, resume=True))
    message = str(caught.value)
    assert f"{tmp_path / 'checkpoint.npz'}: must be of version 3, got 1" in message
    assert "remove the file to start again" in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize("snapshot", ["float32", "bfloat16"])
def test_a_checkpoint_of_version_0_2_is_resumed_if_it_means_the_same_run(graph, tmp_path, snapshot):
    interrupt(graph, tmp_path)
    file = tmp_path / "checkpoint.npz"
    arrays, notes = read_arrays(file, "run")
    notes["identity"]["snapshot"] = snapshot
    with file.open("wb") as out:
        write_arrays(out, arrays, notes, "run")
    checkpoint = Checkpoint(tmp_path, resume=True)
    if snapshot == "float32":
        assert_same(train(graph, settings(), checkpoint=checkpoint), train(graph, settings()))
    else:
        with pytest.raises(CheckpointError, match="snapshot is None and was bfloat16"):
            train(graph, settings(), checkpoint=checkpoint)


def test_what_the_release_before_wrote_is_refused_in_one_line(graph, tmp_path):
    """Its notes know neither `exchange` nor `falls_at`."""
    interrupt(graph, tmp_path, **PAPER)
    file = tmp_path / "checkpoint.npz"
    arrays, notes = read_arrays(file, "run")
    notes["version"] = 1
    for name in ("exchange", "negative_source", "frequency", "start", "smooth"):
        del notes["identity"][name]
    del notes["falls_at"]
    with file.open("wb") as out:
        write_arrays(out, arrays, notes, "run")
    with pytest.raises(CheckpointError, match="must be of version 3, got 1, which another version of manela wrote"):
        train(graph, settings(**PAPER), checkpoint=Checkpoint(tmp_path, resume=True))


def test_the_edition_is_part_of_what_a_run_is(graph, tmp_path):
    interrupt(graph, tmp_path)
    with pytest.raises(CheckpointError, match="exchange is walks and was messages; frequency is 1.0 and was 0.25"):
        Manela.paper(dimensions=12, rounds=40, pairs=400_000).fit(graph, checkpoint=Checkpoint(tmp_path, resume=True))


def test_resuming_with_nothing_saved_begins_anew(graph, tmp_path):
    run = train(graph, settings(), checkpoint=Checkpoint(tmp_path / "new", resume=True))
    np.testing.assert_array_equal(run.state.vectors, train(graph, settings()).state.vectors)


def test_a_folder_that_holds_a_run_is_not_overwritten(graph, tmp_path):
    interrupt(graph, tmp_path)
    with pytest.raises(CheckpointError, match=r"checkpoint\.npz: holds a run; pass resume=True to resume it"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path))


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"dimensions": 13}, "dimensions is 13 and was 12"),
        ({"ratios": (0.7, 0.3)}, r"ratios is \[0.7, 0.3\] and was \[0.5, 0.5\]"),
        ({"random_state": 5}, "random_state is 5 and was 0"),
        ({"learning_rate": 0.5}, "learning_rate is 0.5 and was 0.025"),
        ({"pairs": 400_001}, "pairs is 400001 and was 400000"),
        ({"context": True}, "context is True and was False"),
    ],
)
def test_another_parameter_is_refused_by_name(graph, tmp_path, other, named):
    interrupt(graph, tmp_path)
    with pytest.raises(CheckpointError, match=f"belongs to another run: {named}"):
        train(graph, settings(**other), checkpoint=Checkpoint(tmp_path, resume=True))


def test_another_graph_is_refused(graph, tmp_path):
    interrupt(graph, tmp_path)
    with pytest.raises(CheckpointError, match="belongs to another run: graph is"):
        train(stochastic_block_model(nodes=150, seed=3)[0], settings(), checkpoint=Checkpoint(tmp_path, resume=True))


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_checkpoint_is_refused_with_its_file(graph, tmp_path, damage):
    interrupt(graph, tmp_path)
    file = tmp_path / "checkpoint.npz"
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 255
    file.write_bytes({"cut": data[: len(data) // 2], "flip": data, "empty": b"", "other": b"x" * 99}[damage])
    with pytest.raises(CheckpointError, match=r"checkpoint\.npz: is damaged"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path, resume=True))


@pytest.mark.parametrize(
    "damage",
    [
        {"falls_at": -1},
        {"falls_at": "soon"},
        {"round": -1},
        {"made": -5},
        {"pairs": "many"},
        {"sweeping": [1]},
        {"sweeping": [-1, 1.0, False]},
        {"sweeping": [1, float("inf"), False]},
        {"sweeping": [1, -1.0, False]},
    ],
    ids=str,
)
def test_a_checkpoint_that_contradicts_itself_is_refused(graph, tmp_path, damage):
    rewrite(graph, tmp_path, damage)
    with pytest.raises(CheckpointError, match=r"checkpoint\.npz: is damaged"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path, resume=True))


def test_a_run_that_went_back_before_its_rate_fell_is_resumed(graph, tmp_path):
    """As on a cluster after a loss: which round the rate falls from is known already."""
    parameters = {"pairs": None, "rounds": None, "start": "random"}
    whole = train(graph, settings(**parameters))
    interrupt(graph, tmp_path, after=3, **parameters)
    file = tmp_path / "checkpoint.npz"
    arrays, notes = read_arrays(file, "run")
    assert (notes["round"], notes["falls_at"]) == (3, None)
    with file.open("wb") as out:
        write_arrays(out, arrays, {**notes, "falls_at": whole.state.falls_at}, "run")
    assert_same(train(graph, settings(**parameters), checkpoint=Checkpoint(tmp_path, resume=True)), whole)


def test_a_checkpoint_with_vectors_of_another_shape_is_refused(graph, tmp_path):
    rewrite(graph, tmp_path, {}, {"vectors": np.zeros((149, 12), np.float32)})
    with pytest.raises(CheckpointError, match=r"damaged.*\(149, 12\), not \(150, 12\)"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path, resume=True))


def test_a_checkpoint_with_a_view_of_another_shape_is_refused(graph, tmp_path):
    rewrite(graph, tmp_path, {}, {"view": np.zeros((150, 13), np.float16)})
    with pytest.raises(CheckpointError, match=r"damaged.*\(150, 13\), not \(150, 12\)"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path, resume=True))


def rewrite(graph, folder, notes, arrays=None):
    """A checkpoint after round 7 with other notes or arrays."""
    interrupt(graph, folder)
    file = folder / "checkpoint.npz"
    old_arrays, old_notes = read_arrays(file, "run")
    with file.open("wb") as out:
        write_arrays(out, old_arrays | (arrays or {}), {**old_notes, **notes}, "run")


def test_a_folder_that_cannot_be_made_is_refused(graph, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be created"):
        train(graph, settings(), checkpoint=Checkpoint(tmp_path / "file" / "run"))
