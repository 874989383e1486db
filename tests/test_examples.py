"""The files in examples/host: what they name is there."""

import configparser
import json
import re
from pathlib import Path

import pytest
import yaml

from manela.hosts.daemon.status_server import write_metrics

HOST = Path(__file__).parents[1] / "examples" / "host"
STATUS = {
    "state": "done", "trouble": "", "round": 1, "rounds": 1, "pairs": 1, "nodes": 1, "arcs": 1, "noise": 1.0,
    "expires": 1.0, "began": 1.0, "updated": 1.0, "refusals": {"beta": {"too often": 1}},
    "peers": {"beta": {
        "state": "here", "edges_agreed": 1, "edges_disagreed": 0, "shown_nodes": 1, "expires": 1.0, "sent": 1,
        "received": 1, "alarms": {"jumping": 1},
    }},
}  # fmt: skip


def known_metrics():
    return set(re.findall(r"^(manela_\w+)", write_metrics(STATUS), re.M))


def read_alerts():
    return [rule["expr"] for rule in yaml.safe_load((HOST / "alerts.yml").read_text())["groups"][0]["rules"]]


def read_panels():
    panels = json.loads((HOST / "grafana.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("read", [read_alerts, read_panels])
def test_alerts_and_panels_ask_for_metrics_that_there_are(read):
    expressions = read()
    assert len(expressions) > 7
    for expression in expressions:
        assert set(re.findall(r"manela_\w+", expression)) <= known_metrics(), expression


def test_the_unit_keeps_the_daemon_in_its_place():
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str
    unit.read(HOST / "manela.service")
    service = unit["Service"]
    assert service["UMask"] == "0077"
    assert int(service["LimitNOFILE"]) >= 4096
    for name in ("MemoryMax", "NoNewPrivileges", "ProtectSystem", "SystemCallFilter", "RestrictAddressFamilies"):
        assert service[name]
    assert "manela agent run --home" in service["ExecStart"]
