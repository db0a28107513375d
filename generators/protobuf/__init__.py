"""Protobuf: models written without message objects for their parts."""
