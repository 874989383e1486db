"""Keys for hosts in tests."""

import pytest


@pytest.fixture(scope="session")
def identities(tmp_path_factory):
    """Keys of a few hosts, made once."""
    pytest.importorskip("cryptography")
    from manela.hosts.folder.identity import make_identity, read_certificate
    from manela.hosts.transport.rpc import Keys

    folder = tmp_path_factory.mktemp("identities")
    found = {}
    for name in ("a", "b", "c", "stranger"):
        make_identity(name, folder / f"{name}.key", folder / f"{name}.pem")
        found[name] = Keys((folder / f"{name}.key").read_bytes(), read_certificate(folder / f"{name}.pem").encode())
    return found
