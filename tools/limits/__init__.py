"""The register of limits: every limit, what happens when it is reached, and the test that shows it.

In here: the register's file, `conformance/limits.toml` (`register`); the limits that the sources
and the settings have (`declared`); the checks that tie both to each other and to the tests
(`checks`); the page made of them (`page`); the command line (`command`). What tests have shown is
recorded by `tools.conformance.recording`, with the marks of the documents' sections.
`docs/internals/limits.md` tells how to work with it.
"""
