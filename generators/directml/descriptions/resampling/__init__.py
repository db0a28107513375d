"""Descriptions of the family resampling: DML_RESAMPLE and its successors."""
