r"""[MS-MQMQ] 2.1: the names of queues: path names and format names.

`parse_path_name` and `parse_format_name` turn text into values, `str` turns them back, and
`explain` tells people what a name means. Values compare as MSMQ compares names: without regard to
case. Text that is not a name raises `NameSyntaxError`, wherever it comes from; values that
contradict each other (a port in a TCP name, the journal of a subqueue) are a mistake of the
program and raise `ValueError`.

What is strict and what is not:

* Letters of all scripts are taken where the grammar has ASCII; control characters are not, and
  neither are the characters that the grammar excludes. Names of queues and subqueues may have
  spaces in them, neither first nor last. Lengths are in UTF-16 code units.
* Keywords, prefixes and GUIDs are read in any case. Prefixes, protocols and suffixes are printed
  in capital letters (HTTP names in small ones), GUIDs in small ones.
* The suffixes are those that [MS-MQMQ] 2.2.7 allows for each kind of name.
* HTTP names are read with `/` and `\` before the queue, and printed with `/`.

No name is looked up or resolved here.
"""

from merq.model.names.direct_names import DirectName, parse_direct_name
from merq.model.names.explain import ExplainedPart, Explanation, explain
from merq.model.names.format_names import (
    ELEMENTS_MAX,
    FORMAT_NAME_LENGTH_MAX,
    MULTIPLE_ELEMENT_LENGTH_MAX,
    ConnectorName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    MultipleElementName,
    PrivateName,
    PublicName,
    parse_format_name,
)
from merq.model.names.kinds import (
    SUFFIXES_BY_FORMAT,
    DirectProtocol,
    QueueFormatType,
    QueueScope,
    QueueSuffixType,
)
from merq.model.names.path_names import (
    FORMAT_NAME_PREFIXES,
    LOCAL_COMPUTER,
    PathName,
    parse_path_name,
)
from merq.model.names.scanner import (
    COMPUTER_LENGTH_MAX,
    DOMAIN_LENGTH_MAX,
    QUEUE_LENGTH_MAX,
    SUBQUEUE_LENGTH_MAX,
)

__all__ = [
    "COMPUTER_LENGTH_MAX",
    "DOMAIN_LENGTH_MAX",
    "ELEMENTS_MAX",
    "FORMAT_NAME_LENGTH_MAX",
    "FORMAT_NAME_PREFIXES",
    "LOCAL_COMPUTER",
    "MULTIPLE_ELEMENT_LENGTH_MAX",
    "QUEUE_LENGTH_MAX",
    "SUBQUEUE_LENGTH_MAX",
    "SUFFIXES_BY_FORMAT",
    "ConnectorName",
    "DirectName",
    "DirectProtocol",
    "DistributionListName",
    "ExplainedPart",
    "Explanation",
    "FormatName",
    "MachineName",
    "MulticastName",
    "MultipleElementName",
    "PathName",
    "PrivateName",
    "PublicName",
    "QueueFormatType",
    "QueueScope",
    "QueueSuffixType",
    "explain",
    "parse_direct_name",
    "parse_format_name",
    "parse_path_name",
]
