"""The family resampling: Resize, Upsample, GridSample."""
