import numpy as np

from understudy.models.propagation import (
    ACROSS,
    ALONG,
    CONDITION,
    COPY,
    DIVIDE,
    MULTIPLY,
    PRODUCT,
    SCALE,
    SUM,
    Operation,
    run,
)

TABLE = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ROWS, COLUMNS = np.array([2.0, 0.5]), np.array([1.0, 0.0, 10.0])
AT = {"table": 0, "rows": 6, "columns": 8, "result": 11}
# Runs of three cells: along the columns every run starts at 0, across the rows run i belongs to row i.
OFFSETS = np.array([0, 0, 0, 1])


def after(*operations, floor=0.0):
    data = np.concatenate([TABLE.ravel(), ROWS, COLUMNS, np.full(6, 7.0)])
    run(np.array(operations, dtype=np.int64), OFFSETS, data, floor)
    return data


def along(code, large, small, third=0):
    return Operation(code | ALONG, large, small, 2, 3, 0, 3, third)


def across(code, large, small, third=0):
    return Operation(code | ACROSS, large, small, 2, 3, 2, 2, third)


def test_products():
    data = after(across(MULTIPLY, AT["table"], AT["rows"]), along(PRODUCT, AT["result"], AT["columns"], AT["table"]))
    np.testing.assert_array_equal(data[:6].reshape(2, 3), TABLE * ROWS[:, None])
    np.testing.assert_array_equal(data[11:].reshape(2, 3), TABLE * ROWS[:, None] * COLUMNS)


def test_sums():
    data = after(across(SUM, AT["table"], AT["rows"]), along(SUM, AT["table"], AT["columns"]))
    np.testing.assert_array_equal(data[6:8], TABLE.sum(axis=1))
    np.testing.assert_array_equal(data[8:11], TABLE.sum(axis=0))


def test_conditioning_keeps_zeros_floors_the_rest_and_leaves_massless_rows():
    data = after(across(CONDITION, AT["result"], AT["rows"], AT["table"]))
    np.testing.assert_array_equal(data[11:].reshape(2, 3), TABLE / ROWS[:, None])
    data = after(along(CONDITION, AT["result"], AT["columns"], AT["table"]))
    np.testing.assert_array_equal(data[11:].reshape(2, 3), [[1.0, 7.0, 0.3], [4.0, 7.0, 0.6]])
    data = after(along(CONDITION, AT["result"], AT["columns"], AT["table"]), floor=0.5)
    np.testing.assert_array_equal(data[11:].reshape(2, 3), [[1.0, 7.0, 0.5], [4.0, 7.0, 0.6]])
    zeroed = after(
        across(PRODUCT, AT["result"], AT["rows"], AT["table"]),
        along(MULTIPLY, AT["result"], AT["columns"]),
        across(CONDITION, AT["result"], AT["rows"], AT["table"]),
        floor=0.5,
    )
    assert zeroed[12] == zeroed[15] == 0.0


def test_copy_divide_scale():
    data = after(
        Operation(COPY, AT["result"], AT["table"], 0, 3, 0, 0, 0),
        Operation(DIVIDE, AT["result"], AT["columns"], 0, 3, 0, 0, 0),
        Operation(SCALE, AT["table"], 0, 0, 6, 0, 0, 0),
    )
    np.testing.assert_array_equal(data[11:14], [1.0, 0.0, 0.3])
    np.testing.assert_array_equal(data[:6], TABLE.ravel() / 6.0)
