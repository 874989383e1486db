import gzip
import os

import pytest

from manela.errors import SourceError
from manela.sources.mail_log import MailLogSource
from manela.sources.source import import_to_file
from manela.sources.state import ImportState

TODAY = 20_773  # 2026-11-16
AT = "Nov 16 10:00:01 mx postfix/smtp[18]: 4Abc12"
POSTFIX = """\
Nov 16 10:00:00 mx postfix/qmgr[17]: 4Abc12: from=<anna@example.org>, size=900, nrcpt=2 (queue active)
Nov 16 10:00:01 mx postfix/smtp[18]: 4Abc12: to=<bob@x.net>, relay=x.net[1.2.3.4]:25, status=sent (250 ok)
Nov 16 10:00:01 mx postfix/smtp[18]: 4Abc12: to=<carl@x.net>, relay=none, delay=1, dsn=4.0.0, status=deferred (timeout)
Nov 16 10:00:02 mx postfix/qmgr[17]: 4Abc12: removed
Nov 16 10:00:03 mx postfix/qmgr[17]: 4Def34: from=<>, size=900, nrcpt=1 (queue active)
Nov 16 10:00:04 mx postfix/local[19]: 4Def34: to=<anna@example.org>, relay=local, dsn=2.0.0, status=sent (delivered)
2026-11-16T10:00:05.123456+01:00 mx postfix/qmgr[17]: 4Ghi56: from=<bob@x.net>, size=900, nrcpt=1 (queue active)
2026-11-16T10:00:06.123456+01:00 mx postfix/lmtp[20]: 4Ghi56: to=<anna@example.org>, orig_to=<i@x.net>, status=sent
"""
EXIM = """\
2026-11-16 10:00:00 1abcde-0001Ab-CD <= anna@example.org H=host [1.2.3.4] P=esmtps S=900 id=x@y
2026-11-16 10:00:01 1abcde-0001Ab-CD => bob@x.net R=dnslookup T=remote_smtp H=x.net [1.2.3.4]
2026-11-16 10:00:01 1abcde-0001Ab-CD -> carl <carl@example.org> R=local T=local_delivery
2026-11-16 10:00:01 1abcde-0001Ab-CD ** gone@x.net: Unrouteable address
2026-11-16 10:00:02 1abcde-0001Ab-CD Completed
2026-11-16 10:00:03 1abcdf-0001Ac-CE <= <> R=1abcde-0001Ab-CD U=mail P=local S=900
2026-11-16 10:00:04 1abcdf-0001Ac-CE => anna <anna@example.org> R=local T=local_delivery
"""


def source_of(*paths, **settings):
    return MailLogSource(paths, ["example.org"], today=TODAY, **settings)


def edges_of(source):
    with ImportState(None, source.key) as state:
        return {
            pair: weight
            for batch in source.read(state)
            for pair, weight in zip(zip(batch.own, batch.other, strict=True), batch.weights.tolist(), strict=True)
        }


def test_deliveries_of_postfix_are_counted(tmp_path):
    (tmp_path / "mail.log").write_text(POSTFIX)
    source = source_of(tmp_path / "mail.log")
    assert edges_of(source) == {("anna@example.org", "bob@x.net"): 2.0}
    assert source.describe() == "2 deliveries in 8 lines; left out: 1 without a person as sender"


def test_deliveries_of_exim_are_counted(tmp_path):
    (tmp_path / "mainlog").write_text(EXIM)
    assert edges_of(source_of(tmp_path / "mainlog")) == {
        ("anna@example.org", "bob@x.net"): 1.0, ("anna@example.org", "carl@example.org"): 1.0,
    }  # fmt: skip


def test_a_year_that_is_not_written_is_the_last_one_possible(tmp_path):
    log = tmp_path / "mail.log"
    log.write_text(POSTFIX.replace("Nov 16", "Dec 30"))
    os.utime(log, (TODAY * 86400, TODAY * 86400))
    weights = edges_of(source_of(log, half_life=321.0))  # from 30 December 2025
    assert weights["anna@example.org", "bob@x.net"] == pytest.approx(1.5, abs=0.01)


def test_a_rotated_log_is_read_on_and_a_line_that_is_being_written_waits(tmp_path):
    lines = POSTFIX.splitlines(keepends=True)
    log, state = tmp_path / "mail.log", tmp_path / "state"
    log.write_text("".join(lines[:1]) + lines[1][:60])
    import_to_file(source_of(log), tmp_path / "out.csv", state)
    log.write_text("".join(lines[:7]))
    import_to_file(source_of(log), tmp_path / "out.csv", state)
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == ["anna@example.org,bob@x.net,1"]
    (tmp_path / "mail.log.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.write_text(lines[7])  # its sender was told in the log before
    import_to_file(source_of(tmp_path / "mail.log.1.gz", log), tmp_path / "out.csv", state)
    assert (tmp_path / "out.csv").read_text().splitlines()[1:] == ["anna@example.org,bob@x.net,2"]


def test_endless_lines_and_strange_bytes_are_skipped(tmp_path):
    (tmp_path / "mail.log").write_bytes(b"x" * 300_000 + b"\n\xff\xfe to=<\n" + POSTFIX.encode())
    assert edges_of(source_of(tmp_path / "mail.log")) == {("anna@example.org", "bob@x.net"): 2.0}


@pytest.mark.parametrize(
    "line",
    [
        f"{AT}: to=<eve@x.net>, relay=x, status=bounced (said: no status=sent here)",
        f"{AT}: message-id=<a postfix/smtp[1]: 4Abc12: to=<eve@x.net>, status=sent>",
        f"{AT}: to=<eve@x.net>, relay=127.0.0.1[127.0.0.1]:10024, status=sent (250 2.0.0 "
        "from MTA(smtp:[127.0.0.1]:10025): 250 2.0.0 Ok: queued as 4Xyz99)",
        "x" * 70_000 + f"{AT}: to=<eve@x.net>, relay=x, status=sent (ok)",
    ],
    ids=["bounced", "forged", "handed on", "overlong"],
)
def test_what_was_not_delivered_is_not_counted_whatever_others_write(tmp_path, line):
    lines = POSTFIX.splitlines()
    (tmp_path / "mail.log").write_text("\n".join([lines[0], line, *lines[1:]]) + "\n")
    assert edges_of(source_of(tmp_path / "mail.log")) == {("anna@example.org", "bob@x.net"): 2.0}


def test_senders_of_finished_messages_are_forgotten(tmp_path):
    (tmp_path / "mail.log").write_text(POSTFIX.replace("4Def34: from=<>", "4Def34: from=<secret@hospital.org>"))
    (tmp_path / "mainlog").write_text(EXIM)
    import_to_file(source_of(tmp_path / "mail.log", tmp_path / "mainlog"), tmp_path / "out.csv", tmp_path / "state")
    with ImportState(tmp_path / "state", None) as state:
        assert set(state.get("open")) == {"4Def34", "4Ghi56"}  # which are in the queue


def test_a_time_zone_of_exim_is_read_and_what_is_no_log_is_refused(tmp_path):
    (tmp_path / "mainlog").write_text(
        EXIM.replace(":00 1abc", ":00 +0100 1abc").replace(":01 1abc", ":01.123 +0100 1abc")
    )
    assert len(edges_of(source_of(tmp_path / "mainlog"))) == 2
    (tmp_path / "notes").write_text("hello\n")
    with pytest.raises(SourceError, match="must be a log of Postfix or Exim"):
        edges_of(source_of(tmp_path / "notes"))
