"""Nodes as JSON and as protobuf messages."""
