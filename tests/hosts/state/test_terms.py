"""Terms of a host."""

from dataclasses import replace

from harness import make_terms

from manela.hosts.state.terms import PeerOptions, Terms


def test_hops_and_tables_follow_from_ratios_and_context():
    assert (make_terms().hops, make_terms().tables) == (2, 1)
    terms = make_terms(ratios=(0.5, 0.3, 0.2), context=True)
    assert (terms.hops, terms.tables) == (3, 2)
    assert make_terms(ratios=(1.0,)).hops == 1


def test_hosts_at_their_own_pace_need_not_agree_on_a_run():
    assert make_terms(random_state=1).run == make_terms(random_state=2, rounds=9).run == ""


def test_in_lock_step_all_that_decides_the_vectors_is_part_of_the_run():
    run = make_terms(lock_step=True).run
    assert run
    assert make_terms(lock_step=True).run == run
    for other in ({"random_state": 5}, {"rounds": 6}, {"pairs": 5_001}, {"learning_rate": 0.5}, {"weighted": True}):
        assert make_terms(lock_step=True, **other).run != run, other


def test_how_peers_are_dealt_with_and_how_many_threads_there_are_is_each_hosts_own_matter():
    terms = make_terms(lock_step=True)
    assert replace(terms, peers=PeerOptions(grace=9.0)).run == terms.run
    assert make_terms(lock_step=True, n_jobs=2).run == terms.run


def test_terms_without_options_for_peers_have_the_defaults():
    assert Terms(make_terms().settings).peers == PeerOptions()
