"""What a call or a queue manager answers: the HRESULT codes of MSMQ, in one table.

In it: every code of [MS-MQMQ] 2.4, the few that only other documents of the family name, what each
means, and what an administrator can do about those that [MS-MQSO] 6.7 singles out. Not in it: the
codes that all of Windows shares, and Python's exceptions (`merq.errors`).
"""

from enum import IntEnum, unique
from typing import Final, Self

FACILITY_MSMQ: Final = 0x00E
"""The facility that bits 16 to 26 of every code here but MQ_OK carry."""

_ERROR_BIT: Final = 0x80000000
# [MS-MQMQ] 1.7: a vendor who adds a code sets this bit, so it never collides with the table.
_VENDOR_BIT: Final = 0x20000000
_HRESULT_LIMIT: Final = 1 << 32


def describe(value: int) -> str:
    """Say in one line what a code means, also when no document names it.

    Args:
        value: The code, unsigned or as the signed 32-bit integer that RPC carries.
    """
    if not -_ERROR_BIT <= value < _HRESULT_LIMIT:
        return f"{value:#x}: not an HRESULT, which has 32 bits"
    known = HResult.of(value)
    value %= _HRESULT_LIMIT
    if known is not None:
        advice = f"; {known.advice}" if known.advice else ""
        return f"0x{value:08X} {known.name}: {known.meaning}{advice}"
    if value & _VENDOR_BIT:
        return f"0x{value:08X}: a vendor's own code, not an MSMQ code"
    if _facility(value) == FACILITY_MSMQ:
        return f"0x{value:08X}: not an MSMQ code that the documents name"
    return f"0x{value:08X}: not an MSMQ code"


def _facility(value: int) -> int:
    return value >> 16 & 0x7FF


@unique
class HResult(IntEnum):
    """[MS-MQMQ] 2.4: the codes by name.

    A code that is not here stays a plain integer; `of` and `describe` take any.

    Attributes:
        meaning: What happened, in a phrase.
        advice: What an administrator should do; empty where [MS-MQSO] 6.7 says nothing.
    """

    meaning: str
    advice: str

    def __new__(cls, value: int, meaning: str, advice: str = "") -> Self:
        """Take one row of the table."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        member.advice = advice
        return member

    @classmethod
    def of(cls, value: int) -> "HResult | None":
        """Find a code, given unsigned or as the signed 32-bit integer that RPC carries."""
        if not -_ERROR_BIT <= value < _HRESULT_LIMIT:
            return None
        return _BY_VALUE.get(value % _HRESULT_LIMIT)

    @property
    def is_error(self) -> bool:
        """Whether the call failed; information and success are both False."""
        return bool(self & _ERROR_BIT)

    @property
    def facility(self) -> int:
        """Which part of the system speaks: FACILITY_MSMQ, or 0 for MQ_OK."""
        return _facility(self)

    # Success is spelled out where it is returned, for instance in [MS-MQDMPR] 3.1.4.3.
    MQ_OK = 0x00000000, "done"

    MQ_INFORMATION_PROPERTY = 0x400E0001, "done, but at least one property drew a warning"
    MQ_INFORMATION_ILLEGAL_PROPERTY = 0x400E0002, "no property has this identifier"
    MQ_INFORMATION_PROPERTY_IGNORED = 0x400E0003, "the property plays no part here and was skipped"
    MQ_INFORMATION_UNSUPPORTED_PROPERTY = (
        0x400E0004,
        "the property is not supported; it was skipped",
    )
    MQ_INFORMATION_DUPLICATE_PROPERTY = (
        0x400E0005,
        "the property came twice; the second was skipped",
    )
    MQ_INFORMATION_OPERATION_PENDING = 0x400E0006, "started; the result comes later"
    MQ_INFORMATION_FORMATNAME_BUFFER_TOO_SMALL = (
        0x400E0009,
        "the queue was created, but its format name did not fit in the caller's buffer",
    )
    MQ_INFORMATION_INTERNAL_USER_CERT_EXIST = (
        0x400E000A,
        "the user already has an internal certificate",
    )
    MQ_INFORMATION_OWNER_IGNORED = 0x400E000B, "done, but the owner of the queue was not set"

    MQ_ERROR = 0xC00E0001, "failed, and no other code says why"
    MQ_ERROR_PROPERTY = 0xC00E0002, "at least one property is wrong"
    MQ_ERROR_QUEUE_NOT_FOUND = 0xC00E0003, "there is no such queue, or the caller may not see it"
    MQ_ERROR_QUEUE_NOT_ACTIVE = 0xC00E0004, "the queue is not open, or there is no such queue"
    MQ_ERROR_QUEUE_EXISTS = 0xC00E0005, "another queue already has this path name"
    MQ_ERROR_INVALID_PARAMETER = 0xC00E0006, "an argument of the call is wrong"
    MQ_ERROR_INVALID_HANDLE = 0xC00E0007, "the handle is not one that is open"
    MQ_ERROR_OPERATION_CANCELLED = 0xC00E0008, "called off before it was finished"
    MQ_ERROR_SHARING_VIOLATION = 0xC00E0009, "another receiver has the queue for itself alone"
    MQ_ERROR_SERVICE_NOT_AVAILABLE = (
        0xC00E000B,
        "the queue manager is not running",
        "read its log for the reason, then start it again",
    )
    MQ_ERROR_MACHINE_NOT_FOUND = 0xC00E000D, "no computer of this name is known"
    MQ_ERROR_ILLEGAL_SORT = (
        0xC00E0010,
        "the order asked for makes no sense, as a column given twice",
    )
    MQ_ERROR_ILLEGAL_USER = 0xC00E0011, "no such user"
    MQ_ERROR_NO_DS = (
        0xC00E0013,
        "the directory cannot be reached, or refuses the caller",
        "check that this machine can reach its directory server",
    )
    MQ_ERROR_ILLEGAL_QUEUE_PATHNAME = 0xC00E0014, "this is not a path name of a queue"
    MQ_ERROR_ILLEGAL_PROPERTY_VALUE = 0xC00E0018, "the property cannot have this value"
    MQ_ERROR_ILLEGAL_PROPERTY_VT = 0xC00E0019, "the property is not of this variant type"
    MQ_ERROR_BUFFER_OVERFLOW = (
        0xC00E001A,
        "a property of the message was cut to fit the buffer; the message stays in the queue",
    )
    MQ_ERROR_IO_TIMEOUT = 0xC00E001B, "no message came within the time allowed"
    MQ_ERROR_ILLEGAL_CURSOR_ACTION = (
        0xC00E001C,
        "the cursor has no next message to peek at from here",
    )
    MQ_ERROR_MESSAGE_ALREADY_RECEIVED = (
        0xC00E001D,
        "someone else has taken the message that the cursor points to",
    )
    MQ_ERROR_ILLEGAL_FORMATNAME = 0xC00E001E, "this is not a format name"
    MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL = 0xC00E001F, "the format name does not fit in the buffer"
    MQ_ERROR_UNSUPPORTED_FORMATNAME_OPERATION = (
        0xC00E0020,
        "this cannot be done by a format name of this kind, as deleting by a direct one",
    )
    MQ_ERROR_ILLEGAL_SECURITY_DESCRIPTOR = 0xC00E0021, "the security descriptor is malformed"
    MQ_ERROR_SENDERID_BUFFER_TOO_SMALL = 0xC00E0022, "the sender's identifier does not fit"
    MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL = 0xC00E0023, "the security descriptor does not fit"
    MQ_ERROR_CANNOT_IMPERSONATE_CLIENT = (
        0xC00E0024,
        "the server could not act in the caller's name, so it cannot tell what the caller may do",
    )
    MQ_ERROR_ACCESS_DENIED = 0xC00E0025, "the caller may not do this"
    MQ_ERROR_PRIVILEGE_NOT_HELD = 0xC00E0026, "the caller lacks a privilege that this needs"
    MQ_ERROR_INSUFFICIENT_RESOURCES = 0xC00E0027, "memory, disk or another resource ran short"
    MQ_ERROR_USER_BUFFER_TOO_SMALL = 0xC00E0028, "the answer does not fit in the caller's buffer"
    MQ_ERROR_MESSAGE_STORAGE_FAILED = (
        0xC00E002A,
        "not sent: the message, or its copy for the journal, could not be written to disk",
    )
    MQ_ERROR_SENDER_CERT_BUFFER_TOO_SMALL = 0xC00E002B, "the sender's certificate does not fit"
    MQ_ERROR_INVALID_CERTIFICATE = 0xC00E002C, "the user's certificate is not valid"
    MQ_ERROR_CORRUPTED_INTERNAL_CERTIFICATE = 0xC00E002D, "the internal certificate is damaged"
    MQ_ERROR_INTERNAL_USER_CERT_EXIST = 0xC00E002E, "the user already has an internal certificate"
    MQ_ERROR_NO_INTERNAL_USER_CERT = 0xC00E002F, "the user has no internal certificate"
    MQ_ERROR_CORRUPTED_SECURITY_DATA = 0xC00E0030, "cryptography failed"
    MQ_ERROR_CORRUPTED_PERSONAL_CERT_STORE = 0xC00E0031, "the user's certificate store is damaged"
    MQ_ERROR_COMPUTER_DOES_NOT_SUPPORT_ENCRYPTION = 0xC00E0033, "this computer cannot encrypt"
    MQ_ERROR_BAD_SECURITY_CONTEXT = 0xC00E0035, "the security context is not valid"
    MQ_ERROR_COULD_NOT_GET_USER_SID = 0xC00E0036, "the caller's SID could not be found out"
    MQ_ERROR_COULD_NOT_GET_ACCOUNT_INFO = 0xC00E0037, "the user's account could not be looked up"
    MQ_ERROR_ILLEGAL_MQCOLUMNS = 0xC00E0038, "the columns asked for are malformed"
    MQ_ERROR_ILLEGAL_PROPID = 0xC00E0039, "there is no property of this number"
    MQ_ERROR_ILLEGAL_RELATION = 0xC00E003A, "there is no comparison of this kind"
    MQ_ERROR_ILLEGAL_PROPERTY_SIZE = (
        0xC00E003B,
        "a message or correlation identifier has a wrong size",
    )
    MQ_ERROR_ILLEGAL_RESTRICTION_PROPID = 0xC00E003C, "a search cannot filter by this property"
    MQ_ERROR_ILLEGAL_MQQUEUEPROPS = 0xC00E003D, "no queue properties were given"
    MQ_ERROR_PROPERTY_NOTALLOWED = 0xC00E003E, "the property cannot be used in this call"
    MQ_ERROR_INSUFFICIENT_PROPERTIES = 0xC00E003F, "a property that this call needs is missing"
    MQ_ERROR_MACHINE_EXISTS = (
        0xC00E0040,
        "the directory already holds an object for this queue manager",
        "find out where that object comes from and settle it before users are let in",
    )
    MQ_ERROR_ILLEGAL_MQQMPROPS = 0xC00E0041, "no machine properties were given"
    MQ_ERROR_DS_IS_FULL = 0xC00E0042, "the directory has no room left (MSMQ 1.0 and 2.0)"
    MQ_ERROR_DS_ERROR = 0xC00E0043, "the directory failed inside"
    MQ_ERROR_INVALID_OWNER = 0xC00E0044, "the object cannot have this owner"
    MQ_ERROR_UNSUPPORTED_ACCESS_MODE = 0xC00E0045, "a queue cannot be opened in this mode"
    MQ_ERROR_RESULT_BUFFER_TOO_SMALL = 0xC00E0046, "the result does not fit in the buffer"
    MQ_ERROR_DELETE_CN_IN_USE = (
        0xC00E0048,
        "the connected network is still used, so it cannot be deleted (MSMQ 1.0 and 2.0)",
    )
    MQ_ERROR_NO_RESPONSE_FROM_OBJECT_SERVER = 0xC00E0049, "the owner of the object does not answer"
    MQ_ERROR_OBJECT_SERVER_NOT_AVAILABLE = 0xC00E004A, "the owner of the object cannot be reached"
    MQ_ERROR_QUEUE_NOT_AVAILABLE = 0xC00E004B, "reading from a queue on another computer failed"
    MQ_ERROR_DTC_CONNECT = (
        0xC00E004C,
        "the transaction coordinator cannot be reached",
        "check that the coordinator this queue manager is set to use is running",
    )
    MQ_ERROR_TRANSACTION_IMPORT = 0xC00E004E, "the transaction could not be imported"
    MQ_ERROR_TRANSACTION_USAGE = 0xC00E0050, "this cannot be done in a transaction"
    MQ_ERROR_TRANSACTION_SEQUENCE = 0xC00E0051, "the steps of the transaction came in a wrong order"
    MQ_ERROR_MISSING_CONNECTOR_TYPE = (
        0xC00E0055,
        "an acknowledgment or secured message from a connector must name the connector's type",
    )
    MQ_ERROR_STALE_HANDLE = 0xC00E0056, "the service has restarted since; close the handle"
    MQ_ERROR_TRANSACTION_ENLIST = 0xC00E0058, "the queue manager could not join the transaction"
    MQ_ERROR_QUEUE_DELETED = 0xC00E005A, "the queue was deleted while open; close the handle"
    MQ_ERROR_ILLEGAL_CONTEXT = 0xC00E005B, "the context argument is wrong"
    MQ_ERROR_ILLEGAL_SORT_PROPID = 0xC00E005C, "a search cannot be sorted by this property"
    MQ_ERROR_LABEL_TOO_LONG = 0xC00E005D, "the label of the message is too long"
    MQ_ERROR_LABEL_BUFFER_TOO_SMALL = 0xC00E005E, "the label does not fit in the buffer"
    MQ_ERROR_MQIS_SERVER_EMPTY = 0xC00E005F, "no MQIS server is configured (MSMQ 1.0 and 2.0)"
    MQ_ERROR_MQIS_READONLY_MODE = 0xC00E0060, "the MQIS takes no changes (MSMQ 1.0 and 2.0)"
    MQ_ERROR_SYMM_KEY_BUFFER_TOO_SMALL = 0xC00E0061, "the symmetric key does not fit"
    MQ_ERROR_SIGNATURE_BUFFER_TOO_SMALL = 0xC00E0062, "the signature does not fit"
    MQ_ERROR_PROV_NAME_BUFFER_TOO_SMALL = 0xC00E0063, "the provider's name does not fit"
    MQ_ERROR_ILLEGAL_OPERATION = 0xC00E0064, "this cannot be asked of a foreign messaging system"
    MQ_ERROR_WRITE_NOT_ALLOWED = 0xC00E0065, "no changes while one more MQIS server is set up"
    MQ_ERROR_WKS_CANT_SERVE_CLIENT = (
        0xC00E0066,
        "this queue manager cannot serve dependent clients; ask one that is a supporting server",
    )
    MQ_ERROR_DEPEND_WKS_LICENSE_OVERFLOW = (
        0xC00E0067,
        "the supporting server has as many clients as it accepts",
    )
    MQ_CORRUPTED_QUEUE_WAS_DELETED = (
        0xC00E0068,
        "the file that described the queue was damaged and has been deleted",
    )
    MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE = 0xC00E0069, "the other computer cannot be reached"
    MQ_ERROR_UNSUPPORTED_OPERATION = 0xC00E006A, "this cannot be done in workgroup mode"
    MQ_ERROR_ENCRYPTION_PROVIDER_NOT_SUPPORTED = (
        0xC00E006B,
        "the cryptographic provider asked for is not supported",
    )
    MQ_ERROR_CANNOT_SET_CRYPTO_SEC_DESCR = (
        0xC00E006C,
        "the access rights of the cryptographic keys could not be set",
    )
    MQ_ERROR_CERTIFICATE_NOT_PROVIDED = 0xC00E006D, "an authenticated message needs a certificate"
    MQ_ERROR_Q_DNS_PROPERTY_NOT_SUPPORTED = (
        0xC00E006E,
        "this call cannot give PROPID_Q_PATHNAME_DNS",
    )
    MQ_ERROR_CANNOT_CREATE_CERT_STORE = 0xC00E006F, "the internal certificate could not get a store"
    MQ_ERROR_CANNOT_OPEN_CERT_STORE = 0xC00E0070, "the internal certificate's store does not open"
    MQ_ERROR_ILLEGAL_ENTERPRISE_OPERATION = (
        0xC00E0071,
        "this cannot be done to the object that stands for the enterprise",
    )
    MQ_ERROR_CANNOT_GRANT_ADD_GUID = (
        0xC00E0072,
        "the current user could not be given the permission to add a GUID",
    )
    MQ_ERROR_CANNOT_LOAD_MSMQOCM = 0xC00E0073, "Msmqocm.dll cannot be loaded (MSMQ 1.0 and 2.0)"
    MQ_ERROR_NO_ENTRY_POINT_MSMQOCM = 0xC00E0074, "Msmqocm.dll lacks a function"
    MQ_ERROR_NO_MSMQ_SERVERS_ON_DC = 0xC00E0075, "no domain controller runs message queuing"
    MQ_ERROR_CANNOT_JOIN_DOMAIN = (
        0xC00E0076,
        "in the domain, but not registered in the directory: it goes on in workgroup mode",
        "find out why it could not register and remove the cause, to get the directory's features",
    )
    MQ_ERROR_CANNOT_CREATE_ON_GC = (
        0xC00E0077,
        "the object could not be created on the Global Catalog server that was named",
    )
    MQ_ERROR_GUID_NOT_MATCHING = (
        0xC00E0078,
        "no directory object with this computer's GUID could be made: reinstall (MSMQ 1.0 and 2.0)",
    )
    MQ_ERROR_PUBLIC_KEY_NOT_FOUND = 0xC00E0079, "that computer's public key could not be found"
    MQ_ERROR_PUBLIC_KEY_DOES_NOT_EXIST = 0xC00E007A, "that computer has no public key"
    MQ_ERROR_ILLEGAL_MQPRIVATEPROPS = 0xC00E007B, "no private computer properties were given"
    MQ_ERROR_NO_GC_IN_DOMAIN = 0xC00E007C, "the domain has no Global Catalog server"
    MQ_ERROR_NO_MSMQ_SERVERS_ON_GC = 0xC00E007D, "no Global Catalog server runs message queuing"
    MQ_ERROR_CANNOT_GET_DN = (
        0xC00E007E,
        "this computer's distinguished name could not be found out (MSMQ 1.0 and 2.0)",
    )
    MQ_ERROR_CANNOT_HASH_DATA_EX = 0xC00E007F, "an authenticated message could not be hashed"
    MQ_ERROR_CANNOT_SIGN_DATA_EX = 0xC00E0080, "an authenticated message could not be signed"
    MQ_ERROR_CANNOT_CREATE_HASH_EX = 0xC00E0081, "no hash could be set up to authenticate a message"
    MQ_ERROR_FAIL_VERIFY_SIGNATURE_EX = 0xC00E0082, "the signature of the message does not hold"
    MQ_ERROR_CANNOT_DELETE_PSC_OBJECTS = (
        0xC00E0083,
        "only the PSC that owns the object may delete it",
    )
    MQ_ERROR_NO_MQUSER_OU = (
        0xC00E0084,
        "the domain's directory lacks the organizational unit MSMQ Users; create it by hand",
    )
    MQ_ERROR_CANNOT_LOAD_MQAD = 0xC00E0085, "Mqad.dll cannot be loaded"
    MQ_ERROR_CANNOT_LOAD_MQDSSRV = 0xC00E0086, "reserved; no version has ever answered this"
    MQ_ERROR_PROPERTIES_CONFLICT = 0xC00E0087, "some of the properties exclude each other"
    MQ_ERROR_MESSAGE_NOT_FOUND = 0xC00E0088, "the message is not, or no longer, in the queue"
    MQ_ERROR_CANT_RESOLVE_SITES = (
        0xC00E0089,
        "the directory does not say which sites this computer belongs to",
        "check that this machine can reach its directory server and that every subnet has a site",
    )
    MQ_ERROR_NOT_SUPPORTED_BY_DEPENDENT_CLIENTS = (
        0xC00E008A,
        "this cannot be done through a supporting server",
    )
    MQ_ERROR_OPERATION_NOT_SUPPORTED_BY_REMOTE_COMPUTER = (
        0xC00E008B,
        "the queue manager on the other computer cannot do this",
    )
    MQ_ERROR_NOT_A_CORRECT_OBJECT_CLASS = 0xC00E008C, "the directory object is of another class"
    MQ_ERROR_MULTI_SORT_KEYS = 0xC00E008D, "the directory sorts by one property only"
    MQ_ERROR_GC_NEEDED = 0xC00E008E, "a configuration object with this GUID could not be created"
    MQ_ERROR_DS_BIND_ROOT_FOREST = (
        0xC00E008F,
        "the root of the directory's forest does not accept a connection; suspect DNS",
    )
    MQ_ERROR_DS_LOCAL_USER = (
        0xC00E0090,
        "a user known only to this computer is anonymous to the directory and gets nothing from it",
        "give the user an account of the domain with the rights needed, and log on with it",
    )
    MQ_ERROR_Q_ADS_PROPERTY_NOT_SUPPORTED = 0xC00E0091, "this call cannot give PROPID_Q_ADS_PATH"
    MQ_ERROR_BAD_XML_FORMAT = 0xC00E0092, "the property is not well-formed XML"
    MQ_ERROR_UNSUPPORTED_CLASS = 0xC00E0093, "directory objects of this class are not supported"
    MQ_ERROR_UNINITIALIZED_OBJECT = 0xC00E0094, "initialize the management object before using it"
    MQ_ERROR_CANNOT_CREATE_PSC_OBJECTS = 0xC00E0095, "only a PSC may create and own such an object"
    MQ_ERROR_CANNOT_UPDATE_PSC_OBJECTS = (
        0xC00E0096,
        "only the PSC that owns the object may change it",
    )
    MQ_ERROR_RESOLVE_ADDRESS = 0xC00E0099, "the address is wrong, or DNS does not know it"
    MQ_ERROR_TOO_MANY_PROPERTIES = 0xC00E009A, "a call takes 128 properties at most"
    MQ_ERROR_MESSAGE_NOT_AUTHENTICATED = 0xC00E009B, "the queue takes authenticated messages only"
    MQ_ERROR_MESSAGE_LOCKED_UNDER_TRANSACTION = (
        0xC00E009C,
        "another transaction holds the message and has not ended yet",
    )
    MQDS_UNKNOWN_SOURCE = 0xC00E0504, "a directory change names a directory server that is unknown"

    # [MS-MQMQ] 2.4 lacks the rest, which other protocols of the family answer.
    # [MS-MQMP] 3.2.4.8
    MQ_INFORMATION_REMOTE_OPERATION = 0x400E03E8, "ask the queue manager that holds the queue"
    # [MS-MQQP] 3.1.4.6
    MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT = 0x400E03E9, "the client called off its remote read"
    # [MS-MQDS] 3.3.4.4: its note gives MQ_INFORMATION_MACHINE_OWNED_BY_NT4_PSC the same number.
    MQ_INFORMATION_QUEUE_OWNED_BY_NT4_PSC = (
        0x400E03EB,
        "the queue or machine belongs to a PSC of MSMQ 1.0",
    )
    # [MS-MQDS] 3.2.4.1
    MQ_ERROR_NOT_SUPPORTED = 0xC00E03EB, "the method is obsolete and not supported"
    # [MS-MQDS] 3.1.4.11
    MQDS_WRONG_OBJ_TYPE = 0xC00E0506, "this cannot be done to directory objects of this type"
    # [MS-MQDS] 3.1.4.4
    MQDS_OBJECT_NOT_FOUND = 0xC00E050F, "the directory has no such object"
    # [MS-MQDS] 3.1.4.20
    MQDS_E_NO_MORE_DATA = 0xC00E0523, "the list of sites has no entry at this index"
    # [MS-MQDS] 3.1.4.2
    MQDS_E_CANT_INIT_SERVER_AUTH = 0xC00E052B, "the server's authentication did not start"


_BY_VALUE: Final = {int(code): code for code in HResult}
