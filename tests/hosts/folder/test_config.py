"""A host's configuration."""

import pytest

from manela.errors import AgentError
from manela.hosts.folder.config import Config, LogOptions, check_address, check_syslog, read_config
from manela.hosts.state.terms import PeerOptions, RateLimits


@pytest.mark.parametrize(
    "config",
    [
        Config("alpha", "0.0.0.0:7446", {}),
        Config(
            "b.example", "[::1]:80", {"ratios": (0.2, 0.3, 0.5), "context": True, "pairs": 7, "rounds": 9},
            weighted=True, peers=PeerOptions(half=False, noise=0.5, every=3, pool=5, away=0, grace=0.5),
            rates=RateLimits(requests=1.5, at_once=2), seed=3, numbers="other.csv", watch="localhost:7447",
        ),
        Config("c", "c:1", {"exchange": "walks", "learning_rate": 0.1, "smooth": False}, start="random"),
        Config(
            "d", "d:1", {"frequency": 0.5, "patience": 2.0, "window": 3, "negatives": 7},
            log=LogOptions("udp:[::1]:514", hash_names=True)
        ),
    ],
)  # fmt: skip
def test_what_is_written_is_read(config, tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text(config.write(), encoding="utf-8")
    found = read_config(file)
    assert found.terms(1) == config.terms(1)
    for name in ("name", "listen", "weighted", "peers", "rates", "seed", "numbers", "watch", "log"):
        assert getattr(found, name) == getattr(config, name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('name = "alpha"', 'name = "Alpha!"'), "a host's name must be"),
        (('name = "alpha"', ""), "name must be given"),
        (("0.0.0.0:7446", "7446"), "an address must be host:port"),
        (("0.0.0.0:7446", "a:99999"), "an address must be host:port"),
        (("dimensions = 128", "dimensions = 0"), "dimensions must be a whole number"),
        (("dimensions = 128", "dimension = 128"), "learning.dimension is unknown; known are learning.exchange"),
        (("ratios = [0.5, 0.5]", "ratios = [0.5, 0.6]"), "ratios must sum to 1"),
        (("half = true", "half = 1"), "half must be true or false"),
        (("pool = 2048", "pool = 0"), "peers.pool must be a whole number from 1"),
        (("at_once = 8", "at_once = 2.5"), "limits.at_once must be a whole number from 1"),
        (("noise = ", "nose = "), "peers.nose is unknown; known are peers.half"),
        (("deadline = 10.0", "deadline = true"), "peers.deadline must be a number"),
        (('watch = ""', 'watch = "0.0.0.0:7447"'), "watch must be an address on this machine only"),
        (('watch = ""', 'watch = "here.example:7447"'), "watch must be an address on this machine only"),
        (('watch = ""', "watch = 7447"), "watch must be given, as text"),
        (("[limits]", "[limit]"), "limit is unknown"),
        (("[learning]", "learning = 3\n[other]"), "learning must be a table"),
        (("[learning]", "[learning"), "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(change, words, tmp_path):
    text = Config("alpha", "0.0.0.0:7446", {}).write()
    assert change[0] in text
    file = tmp_path / "agent.toml"
    file.write_text(text.replace(*change, 1), encoding="utf-8")
    with pytest.raises(AgentError) as error:
        read_config(file)
    assert words in str(error.value)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value).partition(" (at ")[0]


def test_a_host_by_messages_draws_from_moments_and_one_by_walks_has_the_settings_of_the_paper():
    by_messages = Config("a", "a:1", {}).terms(1).settings
    assert (by_messages.exchange, by_messages.negative_source, by_messages.smooth) == ("messages", "moments", True)
    assert (by_messages.start, by_messages.views) == ("spectral", "both")
    by_walks = Config("a", "a:1", {"exchange": "walks"}).terms(1).settings
    assert (by_walks.frequency, by_walks.start, by_walks.smooth) == (1.0, "random", False)


@pytest.mark.parametrize("seed", [None, 3])
def test_hosts_learn_two_views_unless_another_start_is_chosen(seed, tmp_path):
    terms = {start: Config("a", "a:1", {}, start=start, seed=seed).terms(1) for start in (None, "spectral", "random")}
    assert [(terms[start].settings.start, terms[start].settings.views) for start in terms] == [
        ("spectral", "both"), ("spectral", "both"), ("random", "rounds")
    ]  # fmt: skip
    assert not any(terms[start].begins_with_means for start in terms)
    assert Config("a", "a:1", {}, start="neighbours").terms(1).begins_with_means
    assert '# start = "spectral"' in Config("a", "a:1", {}).write()
    assert '# start = "random"' in Config("a", "a:1", {"exchange": "walks"}).write()
    for start, more, words in (
        ("two", "", "spectral or random or neighbours"),
        ("neighbours", "[lock_step]\n", "spectral or random"),
        ("spectral", 'exchange = "walks"\n', "random or neighbours"),
    ):
        (tmp_path / "agent.toml").write_text(f'name = "a"\nlisten = "a:1"\n[learning]\nstart = "{start}"\n{more}')
        with pytest.raises(AgentError, match=f"learning.start must be {words}.*, got '{start}'"):
            read_config(tmp_path / "agent.toml")


def test_a_file_that_is_not_there_says_so(tmp_path):
    with pytest.raises(AgentError, match="does not hold a host; make one with"):
        read_config(tmp_path / "agent.toml")


def test_addresses():
    for good in ("a:1", "mail.example.org:7446", "127.0.0.1:65535", "[::1]:80"):
        assert check_address(good) == good
    for bad in ("", "a", ":1", "a:", "a b:1", "a:1:2"):
        with pytest.raises(AgentError, match="host:port"):
            check_address(bad)


@pytest.mark.parametrize(
    "syslog", ["udp:localhost:514", "udp:127.0.0.1:0", "udp:127.0.0.1:65536", "udp:127.0.0.1", "tcp:1:2", "dev", 5]
)
def test_a_system_log_must_be_a_socket_or_a_number_address(syslog):
    with pytest.raises(AgentError, match=r"log\.syslog must be true, a path such as"):
        check_syslog(syslog)


@pytest.mark.parametrize(("syslog", "expected"), [(True, "/dev/log"), (False, ""), ("", ""), ("/run/log", "/run/log")])
def test_a_system_log_may_be_the_usual_one(syslog, expected):
    assert check_syslog(syslog) == expected


@pytest.mark.parametrize(
    ("line", "words"),
    [("hash_names = 1", "log.hash_names must be true or false"), ("level = 3", "log.level is unknown; known are")],
)
def test_a_log_that_cannot_be_meant_is_refused(tmp_path, line, words):
    text = Config("alpha", "0.0.0.0:7446", {}).write().partition("[log]")[0]
    (tmp_path / "agent.toml").write_text(f"{text}[log]\n{line}\n")
    with pytest.raises(AgentError, match=words):
        read_config(tmp_path / "agent.toml")


@pytest.mark.parametrize("learning", ["ratios = [0.4, 0.3, 0.3]", 'start = "neighbours"', 'exchange = "walks"'])
def test_a_bound_on_disclosure_that_cannot_be_kept_is_refused(tmp_path, learning):
    path = tmp_path / "agent.toml"
    path.write_text(f'name = "a"\nlisten = "a:1"\n[learning]\n{learning}\n[peers]\nepsilon = 10.0\n')
    with pytest.raises(AgentError, match=r"epsilon needs messages, at most two ratios"):
        read_config(path)
    path.write_text('name = "a"\nlisten = "a:1"\n[peers]\nepsilon = 10.0\n')
    assert read_config(path).peers.epsilon == 10.0
