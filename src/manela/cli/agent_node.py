"""manela agent node: which nodes a host has, which it never takes, and which it shows to no peer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manela.cli.options import HOME, Home
from manela.cli.panels import Commands
from manela.errors import AgentError

node = Commands("Manage the nodes of this host.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A node of this host.")]
Anyone = Annotated[str, typer.Argument(metavar="NAME", help="A node of this host, or of a peer as name@host.")]


@node.command("remove")
def remove_node(name: Name, home: Home = HOME) -> None:
    """Remove a node for good, with its edges and vector.

    Only a keyed hash of the name stays. By it no import takes the node again; `manela agent node allow` lifts this.
    The name goes from the store, its audit, the states of imports and the backup that the daemon keeps. Peers with
    edges to the node are asked to forget it; see `manela agent node receipts`. What they learned from its vector
    remains in their vectors until they learn again.
    """
    from manela.hosts.folder.erasure import erase_nodes, find_leftovers

    erased = erase_nodes(home, [name])
    asked = f"; {erased.messages:,} peers are asked to forget it" if erased.messages else ""
    print(f"removed {name}, with {erased.edges:,} edges{asked}")
    for path in find_leftovers(home):
        print(f"{path}: may still hold the name; remove it when you do not need it")


@node.command("deny")
def deny(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A name a line, # for comments; - for stdin.")],
    home: Home = HOME,
) -> None:
    """Never take the nodes of a list, and remove those here.

    Only keyed hashes of the names are kept.
    """
    from manela.hosts.folder.erasure import erase_nodes, find_leftovers, read_names

    names = read_names(file)
    erased = erase_nodes(home, names, must_exist=False)
    print(f"denied {len(set(names)):,} names; removed {erased.nodes:,} nodes, with {erased.edges:,} edges")
    for path in find_leftovers(home) if erased.nodes else ():
        print(f"{path}: may still hold the names; remove it when you do not need it")


@node.command("allow")
def allow(name: Anyone, home: Home = HOME) -> None:
    """Let a node that was removed or denied be taken again."""
    from manela.hosts.folder.erasure import allow_node
    from manela.hosts.folder.store import Store

    with Store(home) as store:
        print(f"allowed {name} ({allow_node(store, name)}); the next import may take it")


@node.command("private")
def make_private(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Nodes of this host, which may not exist yet.")
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Show these nodes to peers again.")] = False,
    home: Home = HOME,
) -> None:
    """Learn with nodes, but never show them to a peer.

    Edges of private nodes with nodes of other hosts are not used, so no peer sees their names or vectors. Peers that
    have seen a node are asked to forget it. Without names, the private nodes are listed.
    """
    from manela.hosts.folder import erasure
    from manela.hosts.folder.store import Store

    with Store(home) as store:
        if not names:
            if public:
                raise AgentError("--public needs the names of nodes")
            for name in sorted(store.private()):
                print(name)
            return
        messages = erasure.make_private(store, names, not public)
    asked = f"; {messages:,} messages to peers ask them to forget what they have seen" if messages else ""
    print(f"{len(set(names)):,} nodes are {'public' if public else 'private'}{asked}")


@node.command("hash")
def show_hash(name: Anyone, home: Home = HOME) -> None:
    """Print the hash that stands for a node in logs."""
    from manela.hosts.folder.erasure import show_node
    from manela.hosts.folder.store import Store

    with Store(home) as store:
        print(show_node(store, name))


@node.command("receipts")
def list_receipts(home: Home = HOME) -> None:
    """Show which peers have forgotten removed nodes.

    Each line has the time of the request, the peer, the hash of the node, and the receipt. While a peer has not
    answered, its daemon or that of this host is not running.
    """
    from manela.hosts.folder.erasure import list_requests
    from manela.hosts.folder.store import Store

    with Store(home) as store:
        peers = store.peers()
        for request in list_requests(store):
            answer = "waiting" if request.peer in peers else "was removed before it answered"
            answer = f"forgotten {request.answered}, receipt {request.receipt}" if request.receipt else answer
            print(f"{request.asked}  {request.peer}  {request.shown}  {answer}")
