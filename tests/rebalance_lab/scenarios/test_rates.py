"""Rates, and the CSV files they are read from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.errors import InputError
from rebalance_lab.scenarios.rates import Rates, read_rates

AT = "x.yaml: topics.t.rates_csv"


@pytest.fixture
def read(tmp_path):
    def read(content, partitions=2, interval_ms=1_000, until_ms=3_000):
        path = tmp_path / "rates.csv"
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_rates(path, partitions=partitions, interval_ms=interval_ms, until_ms=until_ms, where=AT)

    return read


def test_an_even_rate_is_split_over_the_partitions():
    assert Rates.evenly(12.0, 3) == Rates(((0, (4.0, 4.0, 4.0)),), even=12.0)


def test_constant_rates_are_those_given():
    assert Rates.constant((9.0, 1.0)) == Rates(((0, (9.0, 1.0)),), even=None)


def test_an_even_rate_is_split_anew_over_partitions_that_are_added():
    rates = Rates.evenly(12.0, 3)
    assert rates.resized(rates.steps[0][1], 6) == (2.0,) * 6


def test_partitions_that_are_added_get_nothing_when_rates_are_given_one_by_one():
    rates = Rates.constant((9.0, 1.0))
    assert rates.resized((9.0, 1.0), 4) == (9.0, 1.0, 0.0, 0.0)
    assert rates.resized((9.0, 1.0), 1) == (9.0,)


def test_a_row_is_an_interval_and_its_values_are_records_in_it(read):
    rates = read("10,20\n30,0\n5,5\n", interval_ms=500, until_ms=1_500)
    assert rates == Rates(((0, (20.0, 40.0)), (500, (60.0, 0.0)), (1_000, (10.0, 10.0))))


def test_a_header_row_is_left_out(read):
    assert read("left,right\n1,2\n3,4\n5,6\n") == read("1,2\n3,4\n5,6\n")


def test_a_header_counts_as_one_when_one_of_its_names_is_a_number(read):
    assert read("left,2024\n1,2\n3,4\n5,6\n") == read("1,2\n3,4\n5,6\n")


@pytest.mark.parametrize("label", ["0", "2024-01-01T00:00", "", "nan"])
def test_a_column_more_than_partitions_is_a_label(read, label):
    assert read(f"{label},1,2\n{label},3,4\n{label},5,6\n") == read("1,2\n3,4\n5,6\n")


def test_a_header_may_have_a_label_column(read):
    assert read("time,left,right\n0,1,2\n1,3,4\n2,5,6\n") == read("1,2\n3,4\n5,6\n")


@pytest.mark.parametrize(
    "content",
    [
        "1,2\r\n3,4\r\n5,6\r\n",
        "1,2\n\n3,4\n\n\n5,6",
        "\ufeff1,2\n3,4\n5,6\n",
        '"1","2"\n3, 4\n5.0,6e0\n',
    ],
    ids=["Windows line ends", "blank lines", "a byte order mark", "quotes and blanks"],
)
def test_the_ways_of_writing_the_same_rows_are_equal(read, content):
    assert read(content) == read("1,2\n3,4\n5,6\n")


def test_rows_that_repeat_the_one_before_are_no_steps(read):
    assert read("1,2\n1,2\n3,4\n").steps == ((0, (1.0, 2.0)), (2_000, (3.0, 4.0)))


def test_after_the_last_row_nothing_is_produced(read):
    assert read("1,2\n", until_ms=1_001).steps == ((0, (1.0, 2.0)), (1_000, (0.0, 0.0)))
    assert read("1,2\n", until_ms=1_000).steps == ((0, (1.0, 2.0)),)


def test_rows_after_the_end_of_the_scenario_are_left_out(read):
    assert read("1,2\n3,4\n5,6\n", until_ms=1_000).steps == ((0, (1.0, 2.0)),)
    assert read("1,2\n3,4\n5,6\n", until_ms=1_001).steps == ((0, (1.0, 2.0)), (1_000, (3.0, 4.0)))


def test_rows_after_the_end_of_the_scenario_are_checked(read):
    with pytest.raises(InputError, match="row 3: found '-1'"):
        read("1,2\n3,4\n-1,6\n", until_ms=1_000)


@pytest.mark.parametrize(
    ("content", "place", "found", "expected"),
    [
        ("1,2\n1\n", "row 2", "1 columns", "2, one per partition (and possibly a label in front)"),
        ("1,2,3,4\n", "row 1", "4 columns", "2, one per partition (and possibly a label in front)"),
        ("a,b,c,d\n1,2\n", "row 1", "4 columns", "2, one per partition (and possibly a label in front)"),
        ("   \n1,2\n", "row 1", "1 columns", "2, one per partition (and possibly a label in front)"),
        ("1,2\n3,-4\n", "row 2", "'-4'", "a number of records, not negative"),
        ("1,2\n\n3,four\n", "row 3", "'four'", "a number of records, not negative"),
        ("left,right\n1,x\n", "row 2", "'x'", "a number of records, not negative"),
        ("left,right\nup,down\n", "row 2", "'up'", "a number of records, not negative"),
        ("1,2\n3,\n", "row 2", "''", "a number of records, not negative"),
        ("1,2\nnan,4\n", "row 2", "'nan'", "a number of records, not negative"),
        ("1,2\n3,inf\n", "row 2", "'inf'", "a number of records, not negative"),
        ("1,2\n3,1e999\n", "row 2", "'1e999'", "a number of records, not negative"),
        ("nan,2\n3,4\n", "row 1", "'nan'", "a number of records, not negative"),
        ("1,inf\n3,4\n", "row 1", "'inf'", "a number of records, not negative"),
        ("-1,2\n3,4\n", "row 1", "'-1'", "a number of records, not negative"),
        ("1,2\n3," + "x" * 99, "row 2", repr("x" * 60), "a number of records, not negative"),
        ("1;2\n3;4\n", "row 1", "1 columns", "2, one per partition (and possibly a label in front)"),
    ],
)
def test_a_row_that_is_wrong_is_named(read, tmp_path, content, place, found, expected):
    with pytest.raises(InputError) as caught:
        read(content)
    wrong = caught.value
    assert wrong.where == f"{AT}: {tmp_path / 'rates.csv'}, {place}"
    assert (wrong.found, wrong.expected) == (found, expected)


@pytest.mark.parametrize("content", ["", "\n\n", "left,right\n"])
def test_a_file_without_numbers_is_refused(read, tmp_path, content):
    with pytest.raises(InputError) as caught:
        read(content)
    assert caught.value.where == f"{AT}: {tmp_path / 'rates.csv'}"
    assert (caught.value.found, caught.value.expected) == ("no rows of numbers", "a row of 2 per interval")


@pytest.mark.parametrize(
    "content",
    [b"1,2\n3,\xff\n", b"1,2\n3," + b"4" * 200_000 + b"\n"],
    ids=["not UTF-8", "a field beyond all measure"],
)
def test_a_file_that_is_no_text_is_refused(read, tmp_path, content):
    with pytest.raises(InputError) as caught:
        read(content)
    assert caught.value.where.startswith(f"{AT}: {tmp_path / 'rates.csv'}, row ")
    assert caught.value.expected == "comma-separated numbers in UTF-8"


def test_a_file_that_is_not_there_is_named(read, tmp_path):
    with pytest.raises(InputError) as caught:
        read(None)
    assert caught.value.where == f"{AT}: {tmp_path / 'rates.csv'}"
    assert caught.value.found == "a file that cannot be read (No such file or directory)"
    assert caught.value.expected == "a CSV file, named relative to the scenario"


def test_a_folder_is_no_file_of_rates(tmp_path):
    with pytest.raises(InputError, match=r"a file that cannot be read \(Is a directory\)"):
        read_rates(tmp_path, partitions=1, interval_ms=1, until_ms=1, where=AT)


@pytest.mark.parametrize("name", ["a\0.csv", "\ud800.csv"])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name):
    with pytest.raises(InputError) as caught:
        read_rates(tmp_path / name, partitions=1, interval_ms=1, until_ms=1, where=AT)
    assert caught.value.where == AT
    assert repr(name)[1:-1] in caught.value.found


counts = st.lists(st.integers(0, 10**6), min_size=3, max_size=3)


@given(st.lists(counts, min_size=1, max_size=12), st.integers(1, 10**7))
def test_all_records_of_the_file_are_produced(tmp_path_factory, rows, interval_ms):
    path = tmp_path_factory.getbasetemp() / "counts.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in rows))
    until_ms = len(rows) * interval_ms
    steps = read_rates(path, partitions=3, interval_ms=interval_ms, until_ms=until_ms, where=AT).steps
    ends = [at_ms for at_ms, _ in steps[1:]] + [until_ms]
    produced = [
        sum(rates[p] * (end - at_ms) / 1_000 for (at_ms, rates), end in zip(steps, ends, strict=True))
        for p in range(3)
    ]
    assert produced == pytest.approx([sum(column) for column in zip(*rows, strict=True)])
