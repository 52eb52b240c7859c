"""Objects to JSON trees and back; hostile trees are refused, never run."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mercer.errors import StorageError
from mercer.params import LogNormal, Parameter
from mercer.registry import Encoded, decode, encode, from_json, storable, to_json


@storable
class RegistryBox:
    """Anything, in a box; refuses to hold the word "bad"."""

    def __init__(self, content, note=None):
        if isinstance(content, str) and content == "bad":
            raise KeyError("content")
        self.content = content
        self.note = note

    def to_state(self):
        return {"content": self.content, "note": self.note}

    @classmethod
    def from_state(cls, state):
        return cls(**state)


@storable(name="RegistryOtherName")
class RegistryRenamed(RegistryBox):
    pass


class RegistryUndecorated(RegistryBox):
    """A subclass that did not register."""

    def __call__(self, x):
        return x


def double(x):
    return 2 * x


def round_trip(value, objects=None):
    """Through the two forms: arrays outside the tree, and inside a JSON text."""
    encoded = encode(value)
    tree = json.loads(json.dumps(encoded.tree, allow_nan=False))
    outside = decode(tree, encoded.arrays, objects)
    inside = from_json(to_json(value), objects)
    return outside, inside


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype == object:
            for x, y in zip(a.ravel(), b.ravel(), strict=True):
                assert_same(x, y)
        else:
            np.testing.assert_array_equal(a, b)
    elif isinstance(a, list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, float) and np.isnan(a):
        assert np.isnan(b)
    else:
        assert a == b


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=5).filter(lambda k: not k.startswith("$")), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(plain)
def test_plain_values_return(value):
    for back in round_trip(value):
        assert_same(value, back)


@settings(deadline=None)
@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_, "<U3"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    )
)
def test_arrays_return_with_dtype_and_shape(array):
    for back in round_trip(array):
        assert_same(array, back)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [">f8", "<f8", "<i2"])
def test_memory_order_and_byte_order_do_not_matter(order, dtype):
    array = np.array(np.arange(12).reshape(3, 4), dtype=dtype, order=order)
    for source in (array, array[::2, ::-1], array.T):
        for back in round_trip(source):
            assert_same(source, back)


def test_special_floats_in_arrays():
    array = np.array([np.inf, -np.inf, np.nan, -0.0, 5e-324, 1.7976931348623157e308])
    for back in round_trip(array):
        np.testing.assert_array_equal(back, array)
        assert np.signbit(back[3])


def test_arrays_stay_out_of_the_tree_unless_inline():
    encoded = encode({"a": np.arange(3), "b": [np.zeros(2)]})
    assert isinstance(encoded, Encoded)
    assert sorted(encoded.arrays) == ["array0", "array1"]
    assert "0" not in json.dumps(encoded.tree).replace("array0", "")
    assert encode(np.arange(3), inline=True).arrays == {}


def test_arrays_of_objects():
    array = np.empty((2, 2), dtype=object)
    # Items of equal length are what NumPy would unpack.
    array[0, 0], array[0, 1], array[1, 0], array[1, 1] = [1, 2], [3, 4], "x", np.arange(2)
    for back in round_trip(array):
        assert_same(array, back)
    one = np.array(None, dtype=object)
    assert round_trip(one)[0].shape == ()


@pytest.mark.parametrize("dtype", [complex, "S3", "datetime64[s]", "V4", "f8,i4"])
def test_other_arrays_are_refused_as_json(dtype):
    with pytest.raises(ValueError, match="dtype"):
        to_json(np.zeros(2, dtype=dtype))


def test_structured_objects_are_refused():
    with pytest.raises(ValueError, match="cannot be saved"):
        encode(np.zeros(1, dtype=[("a", object)]))


def test_numpy_scalars_and_tuples_become_plain():
    value = (np.float64(1.5), np.int64(2), np.bool_(True), np.str_("s"))
    back = round_trip(value)[0]
    assert back == [1.5, 2, True, "s"]
    assert [type(v) for v in back] == [float, int, bool, str]


def test_objects_nest():
    inner = Parameter([1.0, 2.0], bounds=(0.1, np.inf), prior=LogNormal([0.0, 1.0], 2.0))
    for back in round_trip(RegistryBox([RegistryBox(inner), None], {"k": RegistryRenamed(1)})):
        assert type(back) is RegistryBox
        assert back.content[0].content == inner
        assert type(back.note["k"]) is RegistryRenamed


def test_other_name_is_what_is_stored():
    assert encode(RegistryRenamed(1)).tree["$class"] == "RegistryOtherName"


def test_two_classes_cannot_share_a_name():
    with pytest.raises(ValueError, match="two storable classes are called RegistryBox"):
        storable(type("RegistryBox", (), {"__module__": "elsewhere"}))
    assert type(from_json(to_json(RegistryBox(1)))) is RegistryBox


def test_the_same_class_may_come_again():
    assert storable(RegistryBox) is RegistryBox


def test_subclass_that_is_not_registered_is_refused():
    with pytest.raises(ValueError, match="registered with"):
        encode(RegistryUndecorated(1))


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", 1j])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="cannot be saved"):
        encode(value)


@pytest.mark.parametrize("key", [1, "$class", "$other"])
def test_keys_that_would_confuse_are_refused(key):
    with pytest.raises(ValueError, match="plain strings"):
        encode({key: 1})


# ------------------------------------------------------------------------------------- functions


def test_functions_are_named_and_given_back():
    encoded = encode([double, RegistryBox(double)])
    assert encoded.functions == ["double"]
    back = decode(encoded.tree, {}, {"double": double})
    assert back[0] is double and back[1].content is double


def test_missing_function_is_named():
    for objects in (None, {}, {"other": double}):
        with pytest.raises(StorageError, match="double"):
            from_json(to_json(double), objects)


def test_what_is_given_back_must_be_a_function():
    with pytest.raises(StorageError, match="must be a function"):
        from_json(to_json(double), {"double": 3})


def test_nameless_functions_are_refused():
    from functools import partial

    for function in (lambda x: x, partial(double, 1)):
        with pytest.raises(ValueError, match="no name"):
            encode(function)


def test_two_functions_of_one_name_are_refused():
    def other(x):
        return x

    other.__name__ = "double"
    with pytest.raises(ValueError, match="two different functions"):
        encode([double, other])


def test_a_bound_method_may_come_twice():
    box = [1]
    assert encode([box.append, box.append]).functions == ["append"]


# --------------------------------------------------------------------------------- hostile trees

ARRAY = {"$array": [1.0, 2.0], "dtype": "<f8", "shape": [2]}

HOSTILE = {
    "unknown class": {"$class": "os.system", "state": {}},
    "class that is no text": {"$class": ["RegistryBox"], "state": {}},
    "no state": {"$class": "RegistryBox"},
    "state of another type": {"$class": "RegistryBox", "state": [1]},
    "unexpected argument": {"$class": "RegistryBox", "state": {"wrong": 1}},
    "missing argument": {"$class": "RegistryBox", "state": {}},
    "constructor that fails": {"$class": "RegistryBox", "state": {"content": "bad"}},
    "parameter that is NaN": {"$class": "Parameter", "state": {"value": {"$float": "nan"}}},
    "unknown tag": {"$import": "os"},
    "two tags": {"$class": "RegistryBox", "$function": "double"},
    "extra key": {"$function": "double", "args": [1]},
    "float that is none": {"$float": "__import__('os')"},
    "float of another type": {"$float": [1]},
    "float by another spelling": {"$float": "1e5"},
    "missing array": {"$ref": "array9"},
    "array name of another type": {"$ref": {"a": 1}},
    "function name of another type": {"$function": ["double"]},
    "array without dtype": {"$array": [1.0], "shape": [1]},
    "array of objects": ARRAY | {"dtype": "|O"},
    "array of structures": ARRAY | {"dtype": "f8,O"},
    "array of raw bytes": ARRAY | {"dtype": "|V8"},
    "dtype that is none": ARRAY | {"dtype": "nonsense"},
    "dtype of another type": ARRAY | {"dtype": ["f8"]},
    "dtype by code": ARRAY | {"dtype": "{'names': []}"},
    "shape too large": ARRAY | {"shape": [10**12]},
    "shape that does not fit": ARRAY | {"shape": [3]},
    "negative shape": ARRAY | {"shape": [-1]},
    "shape of booleans": ARRAY | {"$array": [1.0], "shape": [True]},
    "shape of another type": ARRAY | {"shape": 2},
    "items of another type": ARRAY | {"$array": "12"},
    "items that are no numbers": ARRAY | {"$array": ["x", "y"]},
    "items that are lists": ARRAY | {"$array": [[1.0], [2.0]]},
    "items too large": {"$array": [10**30], "dtype": "<i8", "shape": [1]},
    "NaN as an integer": {"$array": [{"$float": "nan"}], "dtype": "<i8", "shape": [1]},
    "objects that do not fit": {"$objects": [1, 2], "shape": [3]},
    "objects of negative shape": {"$objects": [1, 2], "shape": [-1, -2]},
    "objects of fractional shape": {"$objects": [1, 2], "shape": [2.0]},
    "objects without shape": {"$objects": [1, 2]},
    "a value of no JSON type": {1, 2},
    "a key of no JSON type": {1: 2},
    "bytes": b"x",
}


@pytest.mark.parametrize("tree", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_trees(tree):
    boxed = {"$class": "RegistryBox", "state": {"content": 1, "note": tree}}
    for wrapped in (tree, [tree], {"a": tree}, boxed):
        with pytest.raises(StorageError):
            decode(wrapped, {}, {"double": double})


def test_deep_nesting_is_refused():
    tree = []
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(StorageError, match="nested"):
        decode(tree, {})
    with pytest.raises(StorageError):
        from_json("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize("text", ["", "{", "nonsense", '{"a": }', "1" * 5000, None, 3])
def test_text_that_is_not_json(text):
    with pytest.raises(StorageError, match="not a JSON description"):
        from_json(text)


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=4) | st.sampled_from(["RegistryBox", "<f8"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["$class", "state", "$array", "dtype", "shape", "$objects", "$ref", "$float"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
def test_random_trees_are_read_or_refused(tree):
    try:
        decode(tree, {})
    except StorageError:
        pass
