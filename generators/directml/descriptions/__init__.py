"""The DML_*_OPERATOR_DESC, by operator family."""
