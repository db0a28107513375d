"""Cases by rule: an operator's parameters declared once; sizes, empty dimensions and pairs follow from that."""
