"""The descriptions of DirectML operators, DML_*_OPERATOR_DESC, in a folder for each operator family."""
