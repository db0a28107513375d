"""Descriptions of the family resampling: DML_RESAMPLE3."""
