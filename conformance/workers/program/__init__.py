"""The stand-alone worker; this folder needs numpy, onnxruntime and Python 3.9 only."""
