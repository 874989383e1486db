"""Stories of hosts, as files under transcripts/: commands, `----`, and the trace that must come out.

`pytest tests/hosts/test_transcripts.py --rewrite` writes the traces as they are; read the difference before you commit
it. The commands are the methods of `Story`.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness import carry, make_terms

from manela.errors import ManelaError
from manela.hosts.state.driver import Driver
from manela.hosts.state.messages import BY_SWEEPS, PHASES, Frame, Introduction, Step
from manela.hosts.state.neighbourhood import Edge, Neighbourhood
from manela.hosts.walks.host import make_host

FOLDER = Path(__file__).with_name("transcripts")
STORIES = sorted(FOLDER.glob("*.txt"))
LIES = {
    "opposite": lambda rows: -rows,
    "huge": lambda rows: rows * np.float32(1e4),
    "nan": lambda rows: np.where(np.arange(len(rows))[:, None, None, None] == 0, np.float32("nan"), rows),
    "constant": lambda rows: np.ones_like(rows) + rows * np.float32(1e-3),
}
PARAMETERS = {"dimensions": 4, "rounds": 2, "pairs": None, "start": "random", "smooth": False, "every": 1, "noise": 0.0}


class Story:
    """Hosts that do what a file says; each command is a method, and `told` is the trace."""

    def __init__(self):
        self.told, self.edges, self.driver = [], {}, None
        self.parameters, self.options, self.lies, self.saved, self.own = PARAMETERS, {}, {}, {}, {}

    def terms(self, *words):
        """NAME=VALUE …: parameters of all hosts from now on; with the name of a host first, of this one."""
        names = [word for word in words if "=" not in word]
        values = {name: read(value) for name, value in (word.split("=") for word in words if "=" in word)}
        if names:
            self.own[names[0]] = values
        else:
            self.parameters = {**self.parameters, **values}

    def driver_options(self, *words):
        """NAME=VALUE …: options of the driver, such as seed, delay, grace and finish."""
        self.options = {name: read(value) for name, value in (word.split("=") for word in words)}

    def hosts(self, *names):
        """Make these hosts, with the edges that each has so far, and let them move by turns."""
        self.driver = Driver(
            {name: self._make(name) for name in names}, carry=self._carry, tell=self.told.append, **self.options
        )
        for name, host in self.driver.hosts.items():
            near = host.neighbourhood
            self.told.append(
                f"{name}: {count(len(near.nodes), 'node')}, edges with {', '.join(near.peers) or 'nobody else'}"
            )

    def edge(self, *words):
        """NODE@HOST NODE@HOST …: edges that both their hosts have; `only HOST` at the end: that one alone has them."""
        only = words[-1] if "only" in words else None
        nodes = [tuple(word.split("@")) for word in words if "@" in word]
        for one, other in zip(nodes[::2], nodes[1::2], strict=True):
            for own, there in ((one, other), (other, one)):
                if only in (None, own[1]):
                    self.edges.setdefault(own[1], []).append(Edge(own[0], there))

    def rings(self, one, other, size):
        """HOST HOST SIZE: a ring of nodes at each, and an edge from each node to its like on the other ring."""
        for i in range(int(size)):
            for host in (one, other):
                self.edge(f"n{i:02}@{host}", f"n{(i + 1) % int(size):02}@{host}")
            self.edge(f"n{i:02}@{one}", f"n{i:02}@{other}")

    def meet(self, name, peer):
        """HOST PEER: the host greets the peer, and introduces its edges."""
        self.driver.meet(name, peer)

    def move(self, name):
        """HOST: it does its next instruction."""
        self.driver.move(name)

    def at(self, name):
        """HOST: what it wants next."""
        self.told.append(f"{name} wants to {self.driver.instruction(name) or 'rest'}")

    def deliver(self, name, peer):
        """HOST PEER: the request that the host has for the peer arrives, and so does the answer."""
        self.driver.call(name, peer)

    def drop(self, name, peer):
        """HOST PEER: the request is lost."""
        self.driver.drop(name, peer)

    def rounds(self, rounds, *words):
        """ROUNDS [quietly]: hosts move until each that is here has done so many more rounds."""
        hosts = [host for name, host in self.driver.hosts.items() if name not in self.driver.away]
        goals = [host.round + int(rounds) for host in hosts]
        self._run("quietly" in words, lambda: all(host.round >= goal for host, goal in zip(hosts, goals, strict=True)))

    def run(self, *words):
        """[quietly]: hosts move to the end of their scripts."""
        self._run("quietly" in words, lambda: False)

    def kill(self, name):
        """HOST: it saves what it has after its last whole round, and is gone."""
        self.saved[name] = self.driver.hosts[name].save()
        self.driver.away.add(name)

    def back(self, name):
        """HOST: a killed host comes back, with what it saved and the edges that it has now."""
        host = self._make(name)
        host.restore(self.saved[name])
        self.driver.restart(host)

    def hide(self, name):
        """HOST: it cannot be reached, and does nothing."""
        self.driver.away.add(name)

    def show(self, name):
        """HOST: a hidden host is here again, where it was."""
        self.driver.away.discard(name)

    def cut(self, name, peer):
        """HOST PEER: calls of the host to the peer fail; the other way they do not."""
        self.driver.broken[name, peer] = f"{peer} cannot be reached"

    def heal(self, name, peer):
        """HOST PEER: calls of the host to the peer arrive again."""
        del self.driver.broken[name, peer]

    def certificate(self, name):
        """HOST: it shows a new certificate, which no peer has pinned."""
        for peer in self.driver.hosts:
            self.driver.broken[peer, name] = f"the server at {name} presented a certificate that is not pinned"
            self.driver.broken[name, peer] = f"{peer} says: the certificate is not known here"

    def pin(self, name, peer):
        """HOST PEER: the host pins the certificate that the peer shows now."""
        for pair in ((name, peer), (peer, name)):
            self.driver.broken.pop(pair, None)

    def change(self, name):
        """HOST: it takes the edges that it has now."""
        host = self.driver.hosts[name]
        self.driver.restart(host.renew(Neighbourhood.build(name, self.edges[name])))

    def forget(self, name, peer):
        """HOST PEER: the operator of the host removes the peer."""
        self.driver.hosts[name].forget(peer)

    def size(self, name, peer, nodes):
        """HOST PEER NODES: the operator of the host writes down how many nodes the peer has."""
        self.driver.hosts[name].peers.configure({peer: int(nodes)})

    def reopen(self, name, rounds):
        """HOST ROUNDS: the operator asks for more rounds."""
        host = self.driver.hosts[name]
        host.reopen(int(rounds))
        self.driver.restart(host)

    def again(self, name):
        """HOST: its operator asks for a new start."""
        host = self.driver.hosts[name]
        host.start_anew()
        self.driver.restart(host)

    def learn_on(self, *names):
        """HOST …: hosts that are done, and have a reason to, learn on, as their daemons would have them do."""
        for name in names:
            host = self.driver.hosts[name]
            if host.should_go_on:
                host.reopen()
                self.driver.restart(host)
                self.told.append(f"{name} learns on")

    def settle(self):
        """Hosts move until nothing happens; those that are done ask peers, and learn on if there is a reason to."""
        told, moved = len(self.told), True
        while moved or not all(map(self.driver.has_ended, self.driver.hosts)):
            moved = self.driver.turn()
            for name, host in self.driver.hosts.items():
                if self.driver.has_ended(name) and name not in self.driver.away:
                    for peer, request in host.refresh().items():
                        if (name, peer) not in self.driver.broken:
                            host.receive(peer, request, self.driver.hosts[peer].answer(name, request))
                    if host.should_go_on:
                        host.reopen()
                        self.driver.restart(host)
                        moved = True
        del self.told[told:]
        self._say_rounds()

    def frames(self, *names):
        """HOST …: the number of the start that each host's vectors come from, and which hosts share one."""
        frames = {name: self.driver.hosts[name].frames.now for name in names}
        for frame in dict.fromkeys(frames.values()):
            here = " and ".join(name for name in names if frames[name] == frame)
            self.told.append(f"{here}: start {frame.number}")

    def claim(self, name, number):
        """HOST NUMBER: to all who ask, it says that its vectors come from this start."""
        for asker in self.driver.hosts.values():
            if name in asker.peers.links:
                request = asker.refresh()[name]
                reply = replace(
                    self.driver.hosts[name].answer(asker.name, request), frame=Frame(BY_SWEEPS + int(number), 1)
                )
                asker.receive(name, request, reply)

    def lie(self, name, how):
        """HOST HOW: the rows that it sends are `opposite`, `huge`, `nan` or `constant`; `not` ends it."""
        self.lies[name] = LIES.get(how)

    def introduce(self, name, peer, *nodes):
        """HOST PEER NODE@HOST NODE: the host introduces an edge, whoever has it."""
        introduction = Introduction([nodes[0]], [nodes[1]])
        acceptance, refusals = self.driver.hosts[peer].admit_edges(name, introduction)
        self.told.append(f"{peer} accepts {int(acceptance.accepted.sum())} of 1 edge")
        self.told.extend(f"{peer} refuses {name}: {refusal}" for refusal in refusals)

    def ask(self, name, peer, phase, *numbers):
        """HOST PEER PHASE NUMBER [LEVEL]: what the host is shown at a step."""
        step = Step(PHASES.index(phase), *map(int, numbers))
        host, request = self.driver.hosts[peer], self.driver.hosts[name].requests()[peer]
        shown = host.answer(name, replace(request, step=step, since=0))
        levels = shown.rows.shape[2]
        self.told.append(
            f"{peer} shows {name} {shown.step} of {count(len(shown.rows), 'node')}: {count(levels, 'level')}, "
            f"moments of {shown.moments[0].size if shown.moments else 'nothing'}"
        )

    def peer(self, name, peer):
        """HOST PEER: what the host knows of the peer."""
        host = self.driver.hosts[name]
        if peer not in host.peers:
            self.told.append(f"{name} knows nothing of {peer}")
            return
        known = host.peers[peer]
        alarms = ", ".join(f"{times} {kind}" for kind, times in sorted(known.alarms.items())) or "none"
        size = "" if known.size is None else f"{known.size} nodes by the operator, "
        self.told.append(
            f"{name} of {peer}: {size}{'' if known.greeting else 'not '}greeted, "
            f"{'not linked' if known.link is None else 'linked by ' + count(len(known.link.arcs), 'edge')}, "
            f"{'not heard' if known.heard is None else f'heard in round {known.heard}'}, "
            f"learned from {count(known.taught, 'edge')}, distrust {known.distrust}, alarms: {alarms}"
        )

    def reason(self, name):
        """HOST: whether it has a reason to continue when all rounds are done."""
        has_reason = self.driver.hosts[name].should_go_on
        self.told.append(f"{name} has {'edges to learn from' if has_reason else 'nothing new to learn from'}")

    def known(self, name):
        """HOST: how many nodes of others it has vectors of, and how far it is."""
        host = self.driver.hosts[name]
        rows = host.read_known()[host.own :]
        seen = int(rows.any(axis=1).sum())
        self.told.append(f"{name}: {count(host.round, 'round')}, vectors of {seen} of {len(rows)} remote nodes")

    def _make(self, name):
        parameters = {**self.parameters, **self.own.get(name, {})}
        numbers = None
        if parameters.get("lock_step"):
            nodes = {(edge.own, host) for host, edges in self.edges.items() for edge in edges}
            numbers = {node: number for number, node in enumerate(sorted(nodes, key=lambda node: node[::-1]))}
        terms = make_terms(**parameters)
        return make_host(terms, Neighbourhood.build(name, self.edges.get(name, []), numbers), numbers)

    def _carry(self, asker, answerer, request, reply):
        lie = self.lies.get(answerer.name)
        if lie is not None:
            reply = replace(reply, rows=lie(reply.rows.astype(np.float32)))
        return carry(asker, answerer, request, reply)

    def _run(self, quietly, until):
        told = len(self.told)
        self.driver.run(until)
        if quietly:
            del self.told[told:]
            self._say_rounds()

    def _say_rounds(self):
        for name, host in self.driver.hosts.items():
            state = "away" if name in self.driver.away else "done" if host.done else "learning"
            self.told.append(f"{name}: {count(host.round, 'round')}, {state}")


def count(number, what):
    return f"{number} {what}{'s' * (number != 1)}"


def read(value):
    """A value of a parameter, as a story writes it."""
    if "," in value or "." in value:
        numbers = tuple(float(part) for part in value.split(",") if part)
        return numbers if "," in value else numbers[0]
    words = {"yes": True, "no": False, "none": None}
    return words.get(value, int(value) if value.lstrip("-").isdecimal() else value)


def play(text):
    """Do what a story says; returns it with the traces that come out."""
    story, written, commands, reading = Story(), [], [], True
    for line in [*text.splitlines(), ""]:
        if line == "----":
            reading = False
            written.append(line)
            for command in commands:
                name, *words = command.split()
                try:
                    getattr(story, name.replace("-", "_"))(*words)
                except ManelaError as error:
                    story.told.append(f"error: {error}")
            written.extend(story.told or ["ok"])
            story.told.clear()
            commands = []
        elif not line:
            reading = True
            written.append(line)
        elif reading:
            written.append(line)
            if not line.startswith("#"):
                commands.append(line)
    return "\n".join(written).rstrip("\n") + "\n"


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_the_story_goes_as_it_is_written(path, request):
    text = path.read_text(encoding="utf-8")
    played = play(text)
    if request.config.getoption("--rewrite"):
        path.write_text(played, encoding="utf-8")
    assert played == text or request.config.getoption("--rewrite")


def test_there_are_stories_and_each_says_in_its_first_line_what_it_is_about():
    assert len(STORIES) >= 25
    assert all(path.read_text(encoding="utf-8").startswith("# ") for path in STORIES)
