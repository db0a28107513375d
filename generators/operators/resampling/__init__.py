"""The family resampling: resampling."""
