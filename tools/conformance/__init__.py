"""The conformance register: which section of which document is met, and how we know.

In here: the register's files, `conformance/*.toml` (`register`); what is taken from the documents
(`specifications`); the page made from it (`page`); citations and test marks (`citing`), and which
citations in code count (`source_code`); what tests have shown (`results`), written by a plugin of
pytest (`recording`); the checks that tie all of these together (`checks`); the notes of the
appendices (`notes`); the command line (`command`). Not in here: any judgement whether a section is
met, which people give.
`docs/internals/conformance.md` tells how to work with it. Only the standard library is used, and
pytest by its plugin, and only `refresh` needs the documents.
"""
