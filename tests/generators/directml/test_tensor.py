"""DML_TENSOR_DATA_TYPE and DML_BUFFER_TENSOR_DESC."""

import ml_dtypes
import numpy as np
import pytest

from epcheck.generators.directml import DataType, TensorDesc


@pytest.mark.parametrize("name", [data_type.name for data_type in DataType if not data_type.name.endswith("INT4")])
def test_a_data_type_and_its_numpy_dtype_name_each_other(name: str) -> None:
    dtype = np.dtype(name.lower())
    assert DataType.of(dtype) is DataType[name]
    assert DataType[name].dtype == dtype


def test_values_are_those_of_the_c_enumeration() -> None:
    assert [(data_type.name, data_type.value) for data_type in DataType] == [
        ("FLOAT32", 1),
        ("FLOAT16", 2),
        ("UINT32", 3),
        ("UINT16", 4),
        ("UINT8", 5),
        ("INT32", 6),
        ("INT16", 7),
        ("INT8", 8),
        ("FLOAT64", 9),
        ("UINT64", 10),
        ("INT64", 11),
        ("UINT4", 12),
        ("INT4", 13),
    ]


def test_bool_travels_as_uint8() -> None:
    assert DataType.of(bool) is DataType.UINT8


def test_four_bit_types_are_known_by_name_and_have_no_numpy_dtype() -> None:
    assert DataType.of(ml_dtypes.int4) is DataType.INT4
    assert DataType.of(ml_dtypes.uint4) is DataType.UINT4
    with pytest.raises(ValueError, match="numpy has no dtype for INT4"):
        _ = DataType.INT4.dtype


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.complex64, np.str_])
def test_a_dtype_without_directml_type_is_refused_by_name(dtype: type) -> None:
    with pytest.raises(ValueError, match=f"no tensor data type for numpy's {np.dtype(dtype).name}"):
        DataType.of(dtype)


def test_counts_of_a_packed_tensor() -> None:
    tensor = TensorDesc(DataType.INT8, (2, 3, 4))
    assert (tensor.dimension_count, tensor.element_count, tensor.buffer_element_count) == (3, 24, 24)


def test_a_packed_view_is_the_buffer_in_row_major_order() -> None:
    view = TensorDesc(DataType.INT32, (2, 3)).view(np.arange(8, dtype=np.int32))
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert not view.flags.writeable


def test_stride_0_repeats_an_element() -> None:
    tensor = TensorDesc(DataType.INT32, (2, 3), strides=(1, 0))
    assert tensor.buffer_element_count == 2
    assert tensor.element_count == 6
    assert tensor.view(np.array([7, 8], np.int32)).tolist() == [[7, 7, 7], [8, 8, 8]]


def test_a_stride_beyond_the_row_skips_padding() -> None:
    tensor = TensorDesc(DataType.UINT8, (2, 2), strides=(4, 1))
    assert tensor.buffer_element_count == 6
    assert tensor.view(np.arange(6, dtype=np.uint8)).tolist() == [[0, 1], [4, 5]]


def test_a_view_ends_inside_its_buffer() -> None:
    with pytest.raises(ValueError, match="need 6 elements; the buffer has 5"):
        TensorDesc(DataType.UINT8, (2, 2), strides=(4, 1)).view(np.zeros(5, np.uint8))


@pytest.mark.parametrize("buffer", [np.zeros(6, np.int8), np.zeros((2, 3), np.uint8)])
def test_a_view_wants_a_flat_buffer_of_its_type(buffer: np.ndarray) -> None:
    with pytest.raises(ValueError, match="a buffer of UINT8 has one dimension"):
        TensorDesc(DataType.UINT8, (2, 3)).view(buffer)


def test_strides_and_sizes_are_as_many() -> None:
    with pytest.raises(ValueError, match="1 strides"):
        TensorDesc(DataType.UINT8, (2, 2), strides=(1,))


@pytest.mark.parametrize(("sizes", "strides"), [((2, -1), None), ((2, 2), (2, -1))])
def test_sizes_and_strides_are_not_negative(sizes: tuple[int, ...], strides: tuple[int, ...] | None) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        TensorDesc(DataType.UINT8, sizes, strides)
