"""Where computers are: names, IPv4, IPv6 and IPX addresses and ports inside of names.

Each function reads one form from a scanner and stops behind it. Not here: what the address is
part of.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from string import ascii_letters

from merq.model.names.scanner import COMPUTER, DIGITS, HEX_DIGITS, Scanner, fold, upper

PORT_MAX = 65535
OCTET_MAX = 255
MULTICAST_FIRST_OCTETS = range(224, 240)

IPV6_GROUPS = 8
IPV6_GROUP_DIGITS_MAX = 4
ZONE_LENGTH_MAX = 32
ZONE_CHARACTERS = frozenset(ascii_letters) | DIGITS | frozenset("._-")

SPX_NETWORK_DIGITS = 8
SPX_NODE_DIGITS = 12

RESERVED_COMPUTERS = ("PRIVATE$", "SYSTEM$")


def scan_computer(scanner: Scanner) -> str:
    """[MS-MQMQ] 2.1.1: a computer by name, `.` for the local one, or by its IPv6 address.

    [MS-MQDMPR] 3.1.7.1.26 makes path names of direct format names by keeping the address, so IPv6
    addresses stand here too; any other colon is somebody's attempt at a port.
    """
    candidate = scanner.ahead("\\/" + scanner.ends)
    if candidate.startswith("[") or candidate.count(":") > 1:
        return scan_ipv6(scanner)
    hint = "a computer's name stands without backslashes before it" if scanner.sees("\\") else ""
    computer = _scan_computer_name(scanner, hint)
    if scanner.sees(":"):
        scanner.fail("'\\'", "only HTTP and HTTPS names carry a port")
    return computer


def scan_http_host(scanner: Scanner) -> str:
    """[MS-MQMQ] 2.1.2: a computer by name or address; IPv6 stands in brackets, as in any URI."""
    if scanner.sees("["):
        return scan_ipv6(scanner)
    return _scan_computer_name(scanner)


def _scan_computer_name(scanner: Scanner, hint: str = "") -> str:
    start = scanner.position
    computer = scanner.take_part(COMPUTER, stops=":", hint=hint)
    if upper(computer) in RESERVED_COMPUTERS:
        scanner.reject(
            f"{computer} is not a computer", f"write .\\{computer} for the local one", at=start
        )
    return computer


def scan_ipv4(scanner: Scanner) -> IPv4Address:
    """[RFC3986] appendix A: four numbers from 0 to 255, without leading zeros."""
    octets = [_scan_octet(scanner)]
    while len(octets) < 4:
        scanner.expect(".", "an IPv4 address has four numbers")
        octets.append(_scan_octet(scanner))
    return IPv4Address(bytes(octets))


def scan_multicast_address(scanner: Scanner) -> IPv4Address:
    """[MS-MQMQ] 2.1.6: an IPv4 address of class D."""
    start = scanner.position
    address = scan_ipv4(scanner)
    if address.packed[0] not in MULTICAST_FIRST_OCTETS:
        scanner.reject(
            f"{address} is not a multicast address",
            "those go from 224.0.0.0 to 239.255.255.255",
            at=start,
        )
    return address


def _scan_octet(scanner: Scanner) -> int:
    start = scanner.position
    digits = scanner.take_run(DIGITS, length_max=3)
    if not digits:
        scanner.fail("a number from 0 to 255")
    if len(digits) > 1 and digits.startswith("0"):
        scanner.reject(f"{digits} has a leading zero, expected a number from 0 to 255", at=start)
    if int(digits) > OCTET_MAX:
        scanner.reject(f"{digits} is more than 255", at=start)
    return int(digits)


def scan_ipv6(scanner: Scanner) -> str:
    """An IPv6 address as [RFC3986] appendix A has it, with or without brackets around it.

    A zone (`%3`) may follow: [RFC3986] has none, but addresses of queue managers have scopes,
    [MS-MQRR] 2.2.5.1. The brackets are not part of what is given back.
    """
    bracketed = scanner.take("[")
    start = scanner.position
    _scan_ipv6_groups(scanner)
    if scanner.take("%") and not scanner.take_run(ZONE_CHARACTERS, length_max=ZONE_LENGTH_MAX):
        scanner.fail("the zone of the IPv6 address")
    address = scanner.text[start : scanner.position]
    if bracketed:
        scanner.expect("]", "the bracket before an IPv6 address is closed behind it")
    return address


def _scan_ipv6_groups(scanner: Scanner) -> None:
    groups = 0
    compressed = scanner.take_word("::")
    group_expected = not compressed
    while group_expected or scanner.sees(HEX_DIGITS):
        limit = IPV6_GROUPS - 1 if compressed else IPV6_GROUPS
        if groups == limit:
            scanner.reject("an IPv6 address has eight groups, and '::' stands for at least one")
        if groups + 2 <= limit and _ipv4_is_next(scanner):
            scan_ipv4(scanner)
            groups += 2
            break
        if not scanner.take_run(HEX_DIGITS, length_max=IPV6_GROUP_DIGITS_MAX):
            scanner.fail("a group of an IPv6 address")
        groups += 1
        if not compressed and groups < IPV6_GROUPS and scanner.take_word("::"):
            compressed, group_expected = True, False
        elif scanner.take(":"):
            group_expected = True
        else:
            break
    if groups < IPV6_GROUPS and not compressed:
        scanner.fail("':'", f"an IPv6 address has eight groups, here are {groups}")


def _ipv4_is_next(scanner: Scanner) -> bool:
    start = scanner.position
    digits = scanner.take_run(DIGITS, length_max=3)
    found = digits != "" and scanner.sees(".")
    scanner.position = start
    return found


def scan_spx_address(scanner: Scanner) -> str:
    """[MS-MQQB] 2.2.4: network and node in hexadecimal digits.

    They are joined by a point there and by a colon in [MS-MQMQ] 2.1.2: both are read, the point is
    given back.
    """
    network = _scan_digits(scanner, SPX_NETWORK_DIGITS, "network number")
    if not scanner.take(":"):
        scanner.expect(".", "an IPX address is network.node")
    return f"{network}.{_scan_digits(scanner, SPX_NODE_DIGITS, 'node number')}"


def _scan_digits(scanner: Scanner, length: int, what: str) -> str:
    digits = scanner.take_run(HEX_DIGITS, length_max=length)
    if len(digits) < length:
        scanner.fail(f"a hexadecimal digit; a {what} has {length}")
    return digits


def scan_http_port(scanner: Scanner) -> int | None:
    """[MS-MQMQ] 2.1.2: the port behind the colon, which may be left out there."""
    if scanner.sees("/\\"):
        return None
    return _scan_port(scanner, lowest=1)


def scan_multicast_port(scanner: Scanner) -> int:
    """[MS-MQMQ] 2.1.6: any port, without leading zeros."""
    start = scanner.position
    port = _scan_port(scanner, lowest=0)
    if scanner.text[start : scanner.position] != str(port):
        scanner.reject("a port has no leading zeros", at=start)
    return port


def _scan_port(scanner: Scanner, *, lowest: int) -> int:
    start = scanner.position
    digits = scanner.take_run(DIGITS, length_max=len(str(PORT_MAX)))
    if not digits:
        hint = "an IPv6 address in an HTTP name stands in brackets" if scanner.sees(":") else ""
        scanner.fail("a port number", hint)
    if scanner.sees(DIGITS) or not lowest <= int(digits) <= PORT_MAX:
        scanner.reject(f"a port is a number from {lowest} to {PORT_MAX}", at=start)
    return int(digits)


def host_key(host: str) -> tuple[object, ...]:
    """What two spellings of a computer have in common if they mean the same."""
    if ":" not in host:
        return (fold(host),)
    address, _, zone = host.partition("%")
    return (IPv6Address(address).packed, fold(zone))
