"""Which columns of a table are the ends and the weight of an edge."""

import pytest

from manela.data.edge_table import COLUMN_NAMES, WEIGHT_NAMES, Choice, choose_by_names, describe_choice, find_pair


def choose(header, counts_up=False, numbers=()):
    return choose_by_names(header, lambda: counts_up, lambda place: place in numbers)


@pytest.mark.parametrize("pair", COLUMN_NAMES, ids="-".join)
def test_every_pair_of_names_is_found_in_any_case_and_order(pair):
    source, target = pair
    assert choose(["when", target.upper(), f" {source.title()} "]) == Choice(2, 1, -1)
    assert find_pair([source]) is None
    assert find_pair([source, target]) == (0, 1)


def test_names_that_stand_earlier_in_the_list_come_first():
    assert find_pair(["user", "item", "source", "target"]) == (2, 3)
    assert find_pair([]) is None


@pytest.mark.parametrize("name", WEIGHT_NAMES)
def test_a_weight_is_found_by_its_name(name):
    assert choose(["source", "target", "colour", name.upper()]).weight == 3


def test_the_likeliest_of_several_weights_is_taken():
    assert choose(["source", "target", "count", "weight"]).weight == 3


def test_one_column_of_numbers_that_is_left_is_the_weight():
    assert choose(["payer", "payee", "euros"], numbers=[2]).weight == 2
    assert choose(["payer", "payee", "euros"]).weight == -1
    assert choose(["payer", "payee", "euros", "cents"], numbers=[2, 3]).weight == -1


@pytest.mark.parametrize("name", ["year", "Timestamp", "created_at", "id"])
def test_a_time_or_an_id_is_no_weight(name):
    assert choose(["source", "target", name], numbers=[2]).weight == -1


def test_without_known_names_the_first_two_are_taken_behind_a_column_that_numbers_the_rows():
    assert choose(["a", "b"]) == Choice(0, 1, -1)
    assert choose(["", "a", "b"], counts_up=True) == Choice(1, 2, -1)
    assert choose(["Unnamed: 0", "a", "b", "x"], counts_up=True, numbers=[0, 3]) == Choice(1, 2, 3)
    assert choose(["id", "a", "b"], counts_up=False) == Choice(0, 1, -1)
    assert choose(["a", "b", "c"], counts_up=True) == Choice(0, 1, -1)


def test_two_columns_are_the_ends_even_if_the_first_counts_up():
    assert choose(["id", "friend"], counts_up=True) == Choice(0, 1, -1)


def test_a_column_that_numbers_the_rows_is_no_weight_where_the_ends_have_names():
    assert choose(["index", "source", "target"], counts_up=True, numbers=[0]) == Choice(1, 2, -1)


def test_nothing_is_said_where_names_say_it_already():
    assert describe_choice(["source", "target"], Choice(0, 1, -1)) == ""
    assert describe_choice(["Source", "Target", "Weight"], Choice(0, 1, 2)) == ""
    assert describe_choice(["from", "to", "x", "y"], Choice(0, 1, -1), unweighted=True) == ""


def test_what_was_taken_for_what_is_said():
    assert (
        describe_choice(["payer", "payee", "euros", "", "day"], Choice(0, 1, 2))
        == "using columns payer and payee as edge endpoints, euros as weight; ignoring a column without a name, day"
    )
    assert describe_choice(["source", "target", "year"], Choice(0, 1, -1)).endswith("; ignoring year")
    assert describe_choice(["a", "b", "n"], Choice(0, 1, 2), unweighted=True).endswith("endpoints; ignoring n")


def test_of_many_columns_that_are_not_read_five_are_named():
    words = describe_choice(["a", "b", *"cdefghi"], Choice(0, 1, -1))
    assert words.endswith("; ignoring c, d, e, f, g and others")


@pytest.mark.parametrize(
    ("header", "numbers", "choice"),
    [
        ("transaction_id,sender_name,receiver_name,amount_eur,comment", [0, 3], Choice(1, 2, 3)),
        ("Timestamp,From Address,To Address,Value", [0, 3], Choice(1, 2, 3)),
        ("order_id,customer_id,product_id,quantity", [0, 1, 2, 3], Choice(1, 2, 3)),
        ("callId,toNumber,fromNumber,callDate", [0, 1, 2], Choice(2, 1, -1)),
        ("date,ann,bob,amount paid,amount due", [3, 4], Choice(1, 2, -1)),  # which amount?
        ("employee_id,manager_id,salary", [0, 1, 2], Choice(0, 1, 2)),
        ("source_ip,target_ip,bytes,packets", [2, 3], Choice(0, 1, -1)),
        ("year,name", [0], Choice(0, 1, -1)),
    ],
)
def test_ends_are_neither_times_nor_numbers_of_rows(header, numbers, choice):
    assert choose(header.split(","), numbers=numbers) == choice


@pytest.mark.parametrize("header", [("user_1", "item_1"), ("u-ann", "v-ann"), ("from here", "to there"), ("to", "to")])
def test_nodes_that_look_like_names_of_columns_are_no_pair(header):
    assert find_pair(header) is None
