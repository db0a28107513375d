"""The name of an operator with its domain."""

from __future__ import annotations


def operator_name(domain: str, name: str) -> str:
    """`Slice`, `com.microsoft::Gelu`: as the suite and a user name the operator, or the function."""
    return f"{domain}::{name}" if domain else name
