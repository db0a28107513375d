"""Who defines the sign of a zero that an operator computes.

ONNX defines floating-point tensors as those of IEEE 754, and names the operation. IEEE 754-2019 defines the sign of a
zero for the operations of clause 5 (6.3, the sign bit) and for the functions of clause 9.2, ISO C for those that IEEE
754 does not have. Where an operator is a formula of several operations, a provider may compute another formula that is
equal but for the signs of zeros, and where it selects one of two zeros, neither standard prefers one: these have no
rule. Nothing that adds up terms has one: the order of a sum is open, and whether it begins with +0.
"""

from __future__ import annotations

SUM = "IEEE 754-2019, 6.3: a sum or difference that is zero is +0, unless both addends are -0"
PRODUCT = "IEEE 754-2019, 6.3: the sign of a product or quotient is the exclusive or of the operands' signs"
ROUNDING = "IEEE 754-2019, 6.3: what rounds to a zero keeps its sign"
ROOT = "IEEE 754-2019, 6.3: the square root of -0 is -0"
FUNCTION = "IEEE 754-2019, 9.2.1: functions that are zero at a zero keep its sign, other zeros are +0"
POWER = "IEEE 754-2019, 9.2.1: a power that is zero is -0 only of a negative base and an odd exponent"
ERF = "ISO C (2024), F.10.5.1: erf of a zero is that zero"
LINEAR = "the page: the input itself, or its product with one number; IEEE 754-2019, 6.3"
REMAINDER = "the page: the sign of the dividend for fmod = 1, of the divisor for fmod = 0"
