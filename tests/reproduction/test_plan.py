from dataclasses import replace

from manela.reproduction.laboratory import FULL, QUICK


def test_a_method_is_compared_only_with_all_of_the_papers_work():
    methods = ("manela", "deepwalk", "node2vec", "relational-neighbors")
    assert [FULL.compares(method) for method in methods] == [True, True, True, True]
    assert [QUICK.compares(method) for method in methods] == [True, False, False, True]
    assert not replace(QUICK, pairs_per_node=1000).compares("manela")
    assert (FULL.compares_search, QUICK.compares_search) == (True, False)
    assert (FULL.compares_links, QUICK.compares_links) == (True, False)


def test_the_page_says_what_a_quick_run_does_not_compare():
    assert FULL.notes == []
    assert "not compared" in QUICK.notes[0]


def test_a_quick_run_has_the_three_networks():
    assert QUICK.networks == FULL.networks == ("blogcatalog", "ppi", "wikipedia")
