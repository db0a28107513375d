"""DirectML's operators without ONNX Runtime, through ctypes: there is nothing to build. Needs numpy and Python 3.9."""
