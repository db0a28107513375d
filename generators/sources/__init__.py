"""The engines that make cases of what operators declare: one a file."""
