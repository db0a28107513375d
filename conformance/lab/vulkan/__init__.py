"""The Vulkan drivers of a machine: where they are, which of them the lab uses, and what they lack."""
