"""Servers of our own that tests of sources share."""

import pytest
from benchmarks.postgres import find_programs, start_postgres


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL that runs, or the test is skipped where it is not installed."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (initdb is neither on the path nor in /usr/lib/postgresql)")
    with start_postgres(programs) as server:
        yield server
