"""The stand-alone worker program; this folder needs numpy, onnxruntime and Python 3.9 only. `worker.py` starts it."""
