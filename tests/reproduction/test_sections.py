import pytest

from manela.reproduction.paper import MICRO_F1, Reasons
from manela.reproduction.sections import (
    Comparison,
    Section,
    compare,
    count,
    format_scores,
    name_parameters,
    summarise_sections,
)


def test_a_single_value_has_no_deviation():
    assert format_scores([0.25]) == "0.250"
    assert format_scores([0.25, 0.25]) == "0.250"
    assert format_scores([0.2, 0.3]) == "0.250 ± 0.071"
    assert format_scores([0.25, 0.2502]) == "0.250 ± <0.001"


def test_things_are_counted_in_english():
    assert [count(n, "run") for n in (1, 2, 1000)] == ["1 run", "2 runs", "1,000 runs"]


def test_values_without_one_of_the_paper_are_not_compared():
    assert compare("x", [0.25], None) == (["", "0.250", ""], [])
    cells, [one] = compare("x", [0.25], 0.2)
    assert cells == ["0.200", "0.250", "+0.050"]
    assert one.difference == pytest.approx(0.05)


def test_the_summary_tells_how_many_are_near_and_what_differs_most():
    found = [
        Comparison("a", 0.2, 0.205),
        Comparison("b", 0.2, 0.25),
        Comparison("c", 0.2, 0.3),
        Comparison("d", 0.2, 0.1),
    ]
    table = summarise_sections(
        [Section("one", "One", comparisons=found), Section("two", "Two", remark="pictures alone")]
    )
    assert table.rows == [
        ["One", "4", "1", "3", "2 higher, most c (+0.100); 1 lower, most d (-0.100)"],
        ["Two", "", "", "", "pictures alone"],
    ]
    near = summarise_sections([Section("one", "One", comparisons=found[:1])])
    assert near.rows == [["One", "1", "1", "0", "none is larger than 0.01"]]


def test_differences_are_explained_from_a_hundredth_on_and_once():
    reasons = Reasons()
    reasons.add("deepwalk", "DeepWalk", [Comparison("a", 0.2, 0.209)])
    assert reasons.notes == []
    for method in MICRO_F1:
        for _ in range(2):
            reasons.add(method, method, [Comparison("a", 0.2, 0.5)])
    assert len(reasons.notes) == len(MICRO_F1)
    assert any("softmax" in note for note in reasons.notes)


def test_parameters_are_named_as_in_the_paper():
    assert name_parameters({"ratios": [0.7, 0.3], "pairs": 5}) == "r₁ = 0.7"
    assert name_parameters({"p": 4.0, "q": 0.5}) == "p = 4, q = 0.5"
    assert name_parameters({"walks": 10}) == ""
