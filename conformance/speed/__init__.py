"""How fast two targets run one node, compared: the measurement, and the ratio that can be relied upon."""
