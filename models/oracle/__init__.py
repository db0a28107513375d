"""The oracle for whole models: their true values in float64."""
