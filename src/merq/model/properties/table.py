"""Every property identifier of [MS-MQMQ] 2.3, in one table, in the document's order.

Not in it: the values that properties may have (`merq.model.properties.values`).
"""

from enum import Enum, unique
from typing import Final, NamedTuple, Self

from merq.model.variant import VariantType

_BLOB: Final = VariantType.VT_BLOB
_CLSID: Final = VariantType.VT_CLSID
_CLSIDS: Final = VariantType.VT_VECTOR_CLSID
_I2: Final = VariantType.VT_I2
_I4: Final = VariantType.VT_I4
_I8: Final = VariantType.VT_I8
_LPWSTR: Final = VariantType.VT_LPWSTR
_LPWSTRS: Final = VariantType.VT_VECTOR_LPWSTR
_UI1: Final = VariantType.VT_UI1
_UI1S: Final = VariantType.VT_VECTOR_UI1
_UI2: Final = VariantType.VT_UI2
_UI4: Final = VariantType.VT_UI4
_VARIANTS: Final = VariantType.VT_VECTOR_VARIANT

_RESERVED: Final = "reserved; its value must not be interpreted"
_PARTITION: Final = "group of directory objects; only MSMQ 1.0 and 2.0 replicated by it"


@unique
class ObjectKind(Enum):
    """[MS-MQMQ] 2.3: what a property is a property of; the value is the section."""

    QUEUE = "2.3.1"
    MACHINE = "2.3.2"
    SITE = "2.3.3"
    CONNECTED_NETWORK = "2.3.4"
    ENTERPRISE = "2.3.5"
    USER = "2.3.6"
    ROUTING_LINK = "2.3.7"
    SETTINGS = "2.3.8"
    MQ_USER = "2.3.9"
    COMPUTER = "2.3.10"
    MANAGEMENT_MACHINE = "2.3.11"
    MANAGEMENT_QUEUE = "2.3.12"
    DELETION_NOTIFICATION = "2.3.13"

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


class _Row(NamedTuple):
    section: str
    number: int
    variant_type: VariantType
    meaning: str


@unique
class Property(Enum):
    """[MS-MQMQ] 2.3: a property identifier by name.

    The value is what identifies a property on the wire: the kind of object and the number. The
    number alone does not, because both kinds of management count from 1.

    Attributes:
        kind: What it is a property of.
        number: The PROPID, in the range that belongs to the kind.
        variant_type: The type of its value.
        section: Where [MS-MQMQ] describes it.
        meaning: What it says, in a phrase.
    """

    kind: ObjectKind
    number: int
    variant_type: VariantType
    section: str
    meaning: str

    def __new__(cls, section: str, number: int, variant_type: VariantType, meaning: str) -> Self:
        """Take one row of the table."""
        member = object.__new__(cls)
        member.kind = ObjectKind(section.rpartition(".")[0])
        member.number = number
        member.variant_type = variant_type
        member.section = section
        member.meaning = meaning
        member._value_ = (member.kind, number)
        return member

    @classmethod
    def of(cls, kind: ObjectKind, number: int) -> "Property | None":
        """Find a property by its number; None where the kind has none of this number."""
        return _BY_NUMBER.get((kind, number))

    @classmethod
    def named(cls, name: str) -> "Property | None":
        """Find a property by its name, such as PROPID_Q_LABEL; None where there is none."""
        return cls.__members__.get(name)

    @classmethod
    def of_kind(cls, kind: ObjectKind) -> "tuple[Property, ...]":
        """List the properties of one kind of object, in the document's order."""
        return tuple(known for known in cls if known.kind is kind)

    # [MS-MQMQ] 2.3.1.1-27
    PROPID_Q_INSTANCE = _Row("2.3.1.1", 101, _CLSID, "GUID of the queue")
    PROPID_Q_TYPE = _Row("2.3.1.2", 102, _CLSID, "kind of service it offers, as its user defines")
    PROPID_Q_PATHNAME = _Row("2.3.1.3", 103, _LPWSTR, "path name, fixed when it is created")
    PROPID_Q_JOURNAL = _Row(
        "2.3.1.4", 104, _UI1, "whether received messages are copied to a journal"
    )
    PROPID_Q_QUOTA = _Row("2.3.1.5", 105, _UI4, "how large it may grow, in kilobytes")
    PROPID_Q_BASEPRIORITY = _Row("2.3.1.6", 106, _I2, "priority of a public queue among others")
    PROPID_Q_JOURNAL_QUOTA = _Row(
        "2.3.1.7", 107, _UI4, "how large its journal may grow, in kilobytes"
    )
    PROPID_Q_LABEL = _Row("2.3.1.8", 108, _LPWSTR, "description, 124 characters at most")
    PROPID_Q_CREATE_TIME = _Row("2.3.1.9", 109, _I4, "creation, in seconds since 1970 UTC")
    PROPID_Q_MODIFY_TIME = _Row("2.3.1.10", 110, _I4, "last change, in seconds since 1970 UTC")
    PROPID_Q_AUTHENTICATE = _Row(
        "2.3.1.11", 111, _UI1, "whether it takes authenticated messages only"
    )
    PROPID_Q_PRIV_LEVEL = _Row(
        "2.3.1.12", 112, _UI4, "whether it takes clear or encrypted messages"
    )
    PROPID_Q_TRANSACTION = _Row(
        "2.3.1.13", 113, _UI1, "whether it takes transactional messages only"
    )
    PROPID_Q_SCOPE = _Row(
        "2.3.1.14", 114, _UI1, "whether it is known in its site or the enterprise"
    )
    PROPID_Q_QMID = _Row("2.3.1.15", 115, _CLSID, "GUID of the queue manager that holds it")
    PROPID_Q_PARTITIONID = _Row("2.3.1.16", 116, _CLSID, _PARTITION)
    PROPID_Q_SEQNUM = _Row("2.3.1.17", 117, _BLOB, "sequence number of the directory object")
    PROPID_Q_HASHKEY = _Row("2.3.1.18", 118, _UI4, _RESERVED)
    PROPID_Q_LABEL_HASHKEY = _Row("2.3.1.19", 119, _UI4, _RESERVED)
    PROPID_Q_FULL_PATH = _Row("2.3.1.20", 121, _LPWSTR, "distinguished name in the directory")
    PROPID_Q_NAME_SUFFIX = _Row(
        "2.3.1.21", 123, _LPWSTR, "rest of a name longer than 64 characters"
    )
    PROPID_Q_PATHNAME_DNS = _Row(
        "2.3.1.22", 124, _LPWSTR, "path name with the host's full DNS name"
    )
    PROPID_Q_MULTICAST_ADDRESS = _Row(
        "2.3.1.23", 125, _LPWSTR, "multicast address:port it listens to"
    )
    PROPID_Q_ADS_PATH = _Row("2.3.1.24", 126, _LPWSTR, "LDAP URL of a public queue")
    PROPID_Q_SECURITY = _Row(
        "2.3.1.25", 1101, _BLOB, "security descriptor, with ACEs of NT 4.0 only"
    )
    PROPID_Q_OBJ_SECURITY = _Row("2.3.1.26", 1102, _BLOB, "security descriptor")
    PROPID_Q_SECURITY_INFORMATION = _Row(
        "2.3.1.27", 1103, _UI4, "which parts of the security descriptor are read or set"
    )

    # [MS-MQMQ] 2.3.2.1-39
    PROPID_QM_SITE_ID = _Row("2.3.2.1", 201, _CLSID, "GUID of the site it is in")
    PROPID_QM_MACHINE_ID = _Row("2.3.2.2", 202, _CLSID, "GUID of the queue manager")
    PROPID_QM_PATHNAME = _Row("2.3.2.3", 203, _LPWSTR, "name of the computer")
    PROPID_QM_ENCRYPTION_PK = _Row(
        "2.3.2.4", 205, _UI1S, "public encryption key, unless PROPID_QM_ENCRYPTION_PK_BASE is there"
    )
    PROPID_QM_ADDRESS = _Row("2.3.2.5", 206, _BLOB, "network addresses, packed as TA_ADDRESS")
    PROPID_QM_CNS = _Row("2.3.2.6", 207, _CLSIDS, "GUIDs of the connected networks it is on")
    PROPID_QM_OUTFRS = _Row(
        "2.3.2.7", 208, _CLSIDS, "GUIDs of the routers that all it sends goes by"
    )
    PROPID_QM_INFRS = _Row("2.3.2.8", 209, _CLSIDS, "GUIDs of the routers that all for it comes by")
    PROPID_QM_SERVICE = _Row("2.3.2.9", 210, _UI4, "what it does for others: routing, directory")
    PROPID_QM_QUOTA = _Row("2.3.2.10", 214, _UI4, "how large all its queues together may grow")
    PROPID_QM_PARTITIONID = _Row("2.3.2.11", 211, _CLSID, _PARTITION)
    PROPID_QM_HASHKEY = _Row("2.3.2.12", 212, _UI4, _RESERVED)
    PROPID_QM_SEQNUM = _Row("2.3.2.13", 213, _BLOB, "sequence number of the directory object")
    PROPID_QM_JOURNAL_QUOTA = _Row(
        "2.3.2.14", 215, _UI4, "how large all its journals together may grow, in kilobytes"
    )
    PROPID_QM_MACHINE_TYPE = _Row("2.3.2.15", 216, _LPWSTR, "versions of system and MSMQ, or empty")
    PROPID_QM_CREATE_TIME = _Row("2.3.2.16", 217, _I4, "creation, in seconds since 1970 UTC")
    PROPID_QM_MODIFY_TIME = _Row("2.3.2.17", 218, _I4, "last change, in seconds since 1970 UTC")
    PROPID_QM_FOREIGN = _Row("2.3.2.18", 219, _UI1, "whether it is a foreign system")
    PROPID_QM_OS = _Row("2.3.2.19", 220, _UI4, "kind of operating system")
    PROPID_QM_FULL_PATH = _Row("2.3.2.20", 221, _LPWSTR, "distinguished name in the directory")
    PROPID_QM_SITE_IDS = _Row("2.3.2.21", 222, _CLSIDS, "GUIDs of all sites it belongs to")
    PROPID_QM_OUTFRS_DN = _Row(
        "2.3.2.22", 223, _LPWSTRS, "distinguished names of the routers that all it sends goes by"
    )
    PROPID_QM_INFRS_DN = _Row(
        "2.3.2.23", 224, _LPWSTRS, "distinguished names of the routers that all for it comes by"
    )
    PROPID_QM_SERVICE_ROUTING = _Row("2.3.2.24", 227, _UI1, "whether it is a routing server")
    PROPID_QM_SERVICE_DSSERVER = _Row("2.3.2.25", 228, _UI1, "whether it is a directory server")
    PROPID_QM_SERVICE_DEPCLIENTS = _Row(
        "2.3.2.26", 229, _UI1, "whether it serves dependent clients"
    )
    PROPID_QM_ENCRYPTION_PK_BASE = _Row("2.3.2.27", 231, _UI1S, "public encryption key")
    PROPID_QM_ENCRYPTION_PK_ENHANCED = _Row(
        "2.3.2.28", 232, _UI1S, "public encryption key for 128-bit encryption"
    )
    PROPID_QM_PATHNAME_DNS = _Row("2.3.2.29", 233, _LPWSTR, "full DNS name of the computer")
    PROPID_QM_OBJ_SECURITY = _Row("2.3.2.30", 234, _BLOB, "security descriptor")
    PROPID_QM_SECURITY_INFORMATION = _Row(
        "2.3.2.31", 237, _UI4, "which parts of the security descriptor are read or set"
    )
    # The document says "for signing" here too; the name and PROPID_QM_ENCRYPT_PK say otherwise.
    PROPID_QM_ENCRYPT_PKS = _Row(
        "2.3.2.32", 238, _BLOB, "public keys for encryption, as MQDSPUBLICKEYS"
    )
    PROPID_QM_SIGN_PKS = _Row("2.3.2.33", 239, _BLOB, "public keys for signing, as MQDSPUBLICKEYS")
    PROPID_QM_OWNER_SID = _Row("2.3.2.34", 241, _BLOB, "SID of the user who set it up")
    PROPID_QM_GROUP_IN_CLUSTER = _Row("2.3.2.35", 242, _UI1, "whether it is part of a cluster")
    PROPID_QM_SECURITY = _Row(
        "2.3.2.36", 1201, _BLOB, "security descriptor, with ACEs of NT 4.0 only"
    )
    PROPID_QM_SIGN_PK = _Row(
        "2.3.2.37", 1202, _BLOB, "public keys for signing, given at creation only"
    )
    PROPID_QM_ENCRYPT_PK = _Row(
        "2.3.2.38", 1203, _BLOB, "public keys for encryption, given at creation only"
    )
    PROPID_QM_UPGRADE_DACL = _Row(
        "2.3.2.39", 1205, _BLOB, "no value: setting it asks the PEC to renew the caller's DACL"
    )

    # [MS-MQMQ] 2.3.3.1-15
    PROPID_S_PATHNAME = _Row("2.3.3.1", 301, _LPWSTR, "name of the site")
    PROPID_S_SITEID = _Row("2.3.3.2", 302, _CLSID, "GUID of the site")
    PROPID_S_GATES = _Row("2.3.3.3", 303, _CLSIDS, "GUIDs of the queue managers that are its gates")
    PROPID_S_PSC = _Row("2.3.3.4", 304, _LPWSTR, "computer that is its primary site controller")
    PROPID_S_INTERVAL1 = _Row("2.3.3.5", 305, _UI2, "seconds between replications within the site")
    PROPID_S_INTERVAL2 = _Row("2.3.3.6", 306, _UI2, "seconds between replications to other sites")
    PROPID_S_PARTITIONID = _Row("2.3.3.7", 307, _CLSID, _PARTITION)
    PROPID_S_SEQNUM = _Row("2.3.3.8", 308, _BLOB, "sequence number of the directory object")
    PROPID_S_FULL_NAME = _Row("2.3.3.9", 309, _LPWSTR, "distinguished name in the directory")
    PROPID_S_NT4_STUB = _Row("2.3.3.10", 310, _UI2, "whether it was migrated from an MQIS")
    PROPID_S_FOREIGN = _Row(
        "2.3.3.11", 311, _UI1, "whether it stands for a foreign messaging system"
    )
    PROPID_S_DONOTHING = _Row(
        "2.3.3.12", 312, _UI1, "unused: where replication puts what no longer has a place"
    )
    PROPID_S_SECURITY = _Row(
        "2.3.3.13", 1301, _BLOB, "security descriptor, with ACEs of NT 4.0 only"
    )
    PROPID_S_PSC_SIGNPK = _Row("2.3.3.14", 1302, _BLOB, "its controller's key for signing")
    PROPID_S_SECURITY_INFORMATION = _Row(
        "2.3.3.15", 1303, _UI4, "which parts of the security descriptor are read or set"
    )

    # [MS-MQMQ] 2.3.4.1-6
    PROPID_CN_PROTOCOLID = _Row("2.3.4.1", 501, _UI1, "network protocol: 1 IP, 3 IPX, 5 any other")
    PROPID_CN_NAME = _Row("2.3.4.2", 502, _LPWSTR, "name, as its user defines")
    PROPID_CN_GUID = _Row("2.3.4.3", 503, _CLSID, "GUID of the connected network")
    PROPID_CN_PARTITIONID = _Row("2.3.4.4", 504, _CLSID, _PARTITION)
    PROPID_CN_SEQNUM = _Row("2.3.4.5", 505, _BLOB, "sequence number of the directory object")
    PROPID_CN_SECURITY = _Row(
        "2.3.4.6", 1501, _BLOB, "security descriptor, with ACEs of NT 4.0 only"
    )

    # [MS-MQMQ] 2.3.5.1-18
    PROPID_E_NAME = _Row("2.3.5.1", 601, _LPWSTR, "name, as its user defines")
    PROPID_E_NAMESTYLE = _Row(
        "2.3.5.2", 602, _UI1, "whether weakened security is on: 0 no, 1 yes, 2 the default"
    )
    PROPID_E_CSP_NAME = _Row("2.3.5.3", 603, _LPWSTR, "cryptographic provider")
    PROPID_E_PECNAME = _Row("2.3.5.4", 604, _LPWSTR, "computer that is its primary controller")
    PROPID_E_S_INTERVAL1 = _Row("2.3.5.5", 605, _UI2, _RESERVED)
    PROPID_E_S_INTERVAL2 = _Row("2.3.5.6", 606, _UI2, _RESERVED)
    PROPID_E_PARTITIONID = _Row("2.3.5.7", 607, _CLSID, _PARTITION)
    PROPID_E_SEQNUM = _Row("2.3.5.8", 608, _BLOB, "sequence number of the directory object")
    PROPID_E_ID = _Row("2.3.5.9", 609, _CLSID, "GUID of the directory object")
    PROPID_E_CRL = _Row("2.3.5.10", 610, _BLOB, _RESERVED)
    PROPID_E_CSP_TYPE = _Row("2.3.5.11", 611, _UI4, _RESERVED)
    PROPID_E_ENCRYPT_ALG = _Row("2.3.5.12", 612, _UI4, _RESERVED)
    PROPID_E_SIGN_ALG = _Row("2.3.5.13", 613, _UI4, _RESERVED)
    PROPID_E_HASH_ALG = _Row("2.3.5.14", 614, _UI4, _RESERVED)
    PROPID_E_LONG_LIVE = _Row("2.3.5.15", 616, _UI4, "default time to reach a queue, in seconds")
    PROPID_E_VERSION = _Row("2.3.5.16", 617, _UI2, "version of the directory's information")
    PROPID_E_SECURITY = _Row(
        "2.3.5.17", 1601, _BLOB, "security descriptor, with ACEs of NT 4.0 only"
    )
    PROPID_E_CIPHER_MODE = _Row("2.3.5.18", 615, _UI4, _RESERVED)

    # [MS-MQMQ] 2.3.6.1-6
    PROPID_U_SID = _Row("2.3.6.1", 701, _BLOB, "SID of the user")
    PROPID_U_PARTITIONID = _Row("2.3.6.2", 703, _CLSID, _PARTITION)
    PROPID_U_SEQNUM = _Row("2.3.6.3", 704, _BLOB, "sequence number of the directory object")
    PROPID_U_SIGN_CERT = _Row("2.3.6.4", 702, _BLOB, "certificates, packed as MQUSERSIGNCERTS")
    PROPID_U_DIGEST = _Row("2.3.6.5", 705, _CLSIDS, "MD5 digest of each certificate")
    PROPID_U_ID = _Row("2.3.6.6", 706, _CLSID, "GUID of the directory object")

    # [MS-MQMQ] 2.3.7.1-13
    PROPID_L_NEIGHBOR1 = _Row("2.3.7.1", 801, _CLSID, "GUID of the site at one end")
    PROPID_L_NEIGHBOR2 = _Row("2.3.7.2", 802, _CLSID, "GUID of the site at the other end")
    PROPID_L_COST = _Row("2.3.7.3", 803, _UI4, "cost of this way, 1 to 999999; 1 unless set")
    PROPID_L_PARTITIONID = _Row("2.3.7.4", 804, _CLSID, _PARTITION)
    PROPID_L_SEQNUM = _Row("2.3.7.5", 805, _BLOB, "sequence number of the directory object")
    PROPID_L_ID = _Row("2.3.7.6", 806, _CLSID, "GUID of the routing link")
    PROPID_L_GATES_DN = _Row("2.3.7.7", 807, _LPWSTRS, "distinguished names of the gates on it")
    PROPID_L_NEIGHBOR1_DN = _Row(
        "2.3.7.8", 808, _LPWSTR, "distinguished name of the site at one end"
    )
    PROPID_L_NEIGHBOR2_DN = _Row(
        "2.3.7.9", 809, _LPWSTR, "distinguished name of the site at the other end"
    )
    PROPID_L_DESCRIPTION = _Row("2.3.7.10", 810, _LPWSTR, "description")
    PROPID_L_FULL_PATH = _Row("2.3.7.11", 811, _LPWSTR, "distinguished name in the directory")
    PROPID_L_ACTUAL_COST = _Row("2.3.7.12", 812, _UI4, "cost before translation, 1 to 999999")
    PROPID_L_GATES = _Row(
        "2.3.7.13", 813, _CLSIDS, "GUIDs of the queue managers that are its gates"
    )

    # [MS-MQMQ] 2.3.8.1-11
    PROPID_SET_NAME = _Row("2.3.8.1", 5101, _LPWSTR, "always the text MSMQ Settings")
    PROPID_SET_SERVICE = _Row("2.3.8.2", 5102, _UI4, "what the server does for others")
    PROPID_SET_QM_ID = _Row("2.3.8.3", 5103, _CLSID, "GUID of its queue manager")
    PROPID_SET_FULL_PATH = _Row("2.3.8.4", 5105, _LPWSTR, "distinguished name in the directory")
    PROPID_SET_NT4 = _Row("2.3.8.5", 5106, _UI1, "whether the server is MSMQ 1.0")
    PROPID_SET_PARTITIONID = _Row("2.3.8.6", 5107, _CLSID, _PARTITION)
    PROPID_SET_SITENAME = _Row("2.3.8.7", 5108, _LPWSTR, "name of the site")
    PROPID_SET_SERVICE_ROUTING = _Row("2.3.8.8", 5109, _UI1, "whether it is a routing server")
    PROPID_SET_SERVICE_DSSERVER = _Row(
        "2.3.8.9", 5110, _UI1, "whether MSMQ 2.0 clients reach the directory through it"
    )
    PROPID_SET_SERVICE_DEPCLIENTS = _Row(
        "2.3.8.10", 5111, _UI1, "whether it can serve dependent clients"
    )
    PROPID_SET_OLDSERVICE = _Row("2.3.8.11", 5112, _UI4, "what the server does for others")

    # [MS-MQMQ] 2.3.9.1-5
    PROPID_MQU_SID = _Row("2.3.9.1", 5401, _BLOB, "SID of the migrated user")
    PROPID_MQU_SIGN_CERT = _Row("2.3.9.2", 5402, _BLOB, "X.509 certificate of the user")
    PROPID_MQU_DIGEST = _Row("2.3.9.3", 5405, _CLSIDS, "MD5 digest of each certificate")
    PROPID_MQU_ID = _Row("2.3.9.4", 5406, _CLSID, "GUID of the directory object")
    PROPID_MQU_SECURITY = _Row(
        "2.3.9.5", 5407, _BLOB, "security descriptor, with ACEs of NT 4.0 only"
    )

    # [MS-MQMQ] 2.3.10.1-8
    PROPID_COM_FULL_PATH = _Row("2.3.10.1", 5201, _LPWSTR, "distinguished name in the directory")
    PROPID_COM_SAM_ACCOUNT = _Row(
        "2.3.10.2", 5202, _LPWSTR, "account: the name, cut to 19 characters, and a dollar sign"
    )
    PROPID_COM_ACCOUNT_CONTROL = _Row("2.3.10.3", 5204, _UI4, "flags of the account")
    PROPID_COM_DNS_HOSTNAME = _Row("2.3.10.4", 5205, _LPWSTR, "full DNS name")
    PROPID_COM_SID = _Row("2.3.10.5", 5206, _BLOB, "SID of the computer")
    PROPID_COM_SIGN_CERT = _Row("2.3.10.6", 5207, _BLOB, "X.509 certificate of the computer")
    PROPID_COM_DIGEST = _Row("2.3.10.7", 5208, _CLSIDS, "MD5 digest of each certificate")
    PROPID_COM_ID = _Row("2.3.10.8", 5209, _CLSID, "GUID of the computer")

    # [MS-MQMQ] 2.3.11.1-6
    PROPID_MGMT_MSMQ_ACTIVEQUEUES = _Row(
        "2.3.11.1", 1, _LPWSTRS, "format names of the active queues"
    )
    PROPID_MGMT_MSMQ_PRIVATEQ = _Row("2.3.11.2", 2, _LPWSTRS, "path names of the private queues")
    PROPID_MGMT_MSMQ_DSSERVER = _Row("2.3.11.3", 3, _LPWSTR, "directory server it uses now")
    PROPID_MGMT_MSMQ_CONNECTED = _Row("2.3.11.4", 4, _LPWSTR, "whether it is on the network")
    PROPID_MGMT_MSMQ_TYPE = _Row("2.3.11.5", 5, _LPWSTR, "versions and builds of system and MSMQ")
    PROPID_MGMT_MSMQ_BYTES_IN_ALL_QUEUES = _Row(
        "2.3.11.6", 6, _I8, "bytes of all messages in all queues"
    )

    # [MS-MQMQ] 2.3.12.1-27
    PROPID_MGMT_QUEUE_PATHNAME = _Row("2.3.12.1", 1, _LPWSTR, "path name")
    PROPID_MGMT_QUEUE_FORMATNAME = _Row("2.3.12.2", 2, _LPWSTR, "format name")
    PROPID_MGMT_QUEUE_TYPE = _Row("2.3.12.3", 3, _LPWSTR, "public, private, machine and so on")
    PROPID_MGMT_QUEUE_LOCATION = _Row("2.3.12.4", 4, _LPWSTR, "whether it is on this computer")
    PROPID_MGMT_QUEUE_XACT = _Row("2.3.12.5", 5, _LPWSTR, "whether it is transactional, if known")
    PROPID_MGMT_QUEUE_FOREIGN = _Row("2.3.12.6", 6, _LPWSTR, "whether it is foreign, if known")
    PROPID_MGMT_QUEUE_MESSAGE_COUNT = _Row("2.3.12.7", 7, _UI4, "messages in it")
    PROPID_MGMT_QUEUE_BYTES_IN_QUEUE = _Row("2.3.12.8", 8, _UI4, "bytes of all messages in it")
    PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT = _Row("2.3.12.9", 9, _UI4, "messages in its journal")
    PROPID_MGMT_QUEUE_BYTES_IN_JOURNAL = _Row(
        "2.3.12.10", 10, _UI4, "bytes of all messages in its journal"
    )
    PROPID_MGMT_QUEUE_STATE = _Row("2.3.12.11", 11, _LPWSTR, "connection of an outgoing queue")
    PROPID_MGMT_QUEUE_NEXTHOPS = _Row(
        "2.3.12.12", 12, _LPWSTRS, "address of the next hop, or all it may be while connecting"
    )
    PROPID_MGMT_QUEUE_EOD_LAST_ACK = _Row(
        "2.3.12.13",
        13,
        _BLOB,
        "sequence of the last message sent that has its order acknowledgment",
    )
    PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME = _Row(
        "2.3.12.14", 14, _I4, "arrival of the last order acknowledgment, in seconds since 1970 UTC"
    )
    PROPID_MGMT_QUEUE_EOD_LAST_ACK_COUNT = _Row(
        "2.3.12.15", 15, _UI4, "how often the last order acknowledgment came"
    )
    PROPID_MGMT_QUEUE_EOD_FIRST_NON_ACK = _Row(
        "2.3.12.16",
        16,
        _BLOB,
        "sequence of the first message sent that lacks an order acknowledgment",
    )
    PROPID_MGMT_QUEUE_EOD_LAST_NON_ACK = _Row(
        "2.3.12.17",
        17,
        _BLOB,
        "sequence of the last message sent that lacks an order acknowledgment",
    )
    PROPID_MGMT_QUEUE_EOD_NEXT_SEQ = _Row(
        "2.3.12.18", 18, _BLOB, "sequence that the next message will have"
    )
    PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT = _Row(
        "2.3.12.19", 19, _UI4, "messages that arrived in order but are not known to be received"
    )
    PROPID_MGMT_QUEUE_EOD_NO_ACK_COUNT = _Row(
        "2.3.12.20", 20, _UI4, "messages sent that lack an order acknowledgment"
    )
    PROPID_MGMT_QUEUE_EOD_RESEND_TIME = _Row(
        "2.3.12.21", 21, _I4, "when it sends again, in seconds since 1970 UTC"
    )
    PROPID_MGMT_QUEUE_EOD_RESEND_INTERVAL = _Row(
        "2.3.12.22", 22, _UI4, "seconds until what lacks an order acknowledgment is sent again"
    )
    PROPID_MGMT_QUEUE_EOD_RESEND_COUNT = _Row(
        "2.3.12.23", 23, _UI4, "how often the last message was sent"
    )
    PROPID_MGMT_QUEUE_EOD_SOURCE_INFO = _Row(
        "2.3.12.24", 24, _VARIANTS, "six arrays on the transactional messages from each source"
    )
    PROPID_MGMT_QUEUE_CONNECTION_HISTORY = _Row(
        "2.3.12.25", 25, _VARIANTS, "four arrays: status, time, error and addresses of each attempt"
    )
    PROPID_MGMT_QUEUE_SUBQUEUE_COUNT = _Row("2.3.12.26", 26, _UI4, "how many subqueues it has")
    PROPID_MGMT_QUEUE_SUBQUEUE_NAMES = _Row("2.3.12.27", 27, _LPWSTRS, "names of its subqueues")

    # [MS-MQMQ] 2.3.13.1-5
    PROPID_D_SEQNUM = _Row("2.3.13.1", 1401, _BLOB, "sequence number of the deleted object")
    PROPID_D_PARTITIONID = _Row("2.3.13.2", 1402, _CLSID, _PARTITION)
    PROPID_D_SCOPE = _Row("2.3.13.3", 1403, _UI1, "whether the site or the enterprise is told")
    PROPID_D_OBJTYPE = _Row("2.3.13.4", 1404, _UI1, "what kind of object was deleted")
    PROPID_D_IDENTIFIER = _Row("2.3.13.5", 1405, _CLSID, "GUID of the deleted object")


_BY_NUMBER: Final = {(known.kind, known.number): known for known in Property}
