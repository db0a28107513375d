"""The conformance suite as pytest sees it: one test for each case, its id the case id.

There is no code here: the plugin collects the cases in the name of this file, `test_suite.py::test_case[CASE ID]`.
"""
