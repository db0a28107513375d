"""The DML_* enumerations that operator descriptions have as members.

A class is named for the C enumeration (`AxisDirection` for DML_AXIS_DIRECTION), a member for the rest of the C
name (`INCREASING` for DML_AXIS_DIRECTION_INCREASING), and its value is the C value.
"""

from enum import Enum


class AxisDirection(Enum):
    """DML_AXIS_DIRECTION (ne-directml-dml_axis_direction)."""

    INCREASING = 0
    DECREASING = 1
