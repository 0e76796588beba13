"""Addresses of schedulers: their syntax, and which connections are allowed and accepted."""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from typing import NamedTuple

from codebatch.errors import InvalidInput

CONNECT_SECONDS = 10.0
"""The maximum time for a connection to a scheduler."""

_ADDRESS = re.compile(
    r"(?P<protocol>tcp|tls)://(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s/\[\]:@?#]+)):(?P<port>[0-9]{1,5})/?"
)
_PORT_MAX = 65_535


class SchedulerAddress(NamedTuple):
    """The address of a scheduler, such as `tls://host:8786`."""

    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}://{host}:{self.port}"


def parse_address(text: str) -> SchedulerAddress:
    """Return the address in a text. Raises InvalidInput."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not 1 <= int(match["port"]) <= _PORT_MAX:
        raise InvalidInput(
            f"{text!r} is not the address of a scheduler", hint="give an address such as tls://HOST:8786"
        )
    return SchedulerAddress(match["protocol"], match["host"] or match["ipv6"], int(match["port"]))


def resolve_loopback(address: SchedulerAddress) -> SchedulerAddress | None:
    """Return an address with the number of a loopback host, or None if the host is another machine.

    A host name that resolves to several addresses must resolve to loopback addresses alone. The returned address is
    not resolved again, so it cannot change between this check and the connection. Raises InvalidInput.
    """
    numbers = [str(sockaddr[0]) for *_, sockaddr in _resolve(address)]
    if all(ipaddress.ip_address(number.partition("%")[0]).is_loopback for number in numbers):
        return address._replace(host=numbers[0])
    return None


def check_connection(address: SchedulerAddress, context: ssl.SSLContext | None) -> None:
    """Connect to a scheduler once, and wait for its first bytes, which it sends only to a client that it accepts.

    Dask retries failed connections until its own limit, and then does not report the cause. Raises InvalidInput with
    the cause after at most about CONNECT_SECONDS.
    """
    _resolve(address)
    try:
        with socket.create_connection((address.host, address.port), timeout=CONNECT_SECONDS / 2) as plain:
            if context is None:
                data = plain.recv(1)
            else:
                with context.wrap_socket(plain) as encrypted:
                    data = encrypted.recv(1)
    except ssl.SSLError as error:
        raise _tls_problem(address, error) from error
    except OSError as error:
        problem = "it does not answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise _unreachable(address, problem) from error
    if not data:
        raise _unreachable(address, "it closed the connection")


def _resolve(address: SchedulerAddress) -> list[tuple[object, object, object, object, tuple[object, ...]]]:
    try:
        return [*socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _unreachable(address, f"host {address.host!r} cannot be resolved: {reason}") from error


def _unreachable(address: SchedulerAddress, problem: str) -> InvalidInput:
    return InvalidInput(
        f"cannot connect to the scheduler at {address}: {problem}",
        hint="check that the scheduler is running, and that its address and protocol (tcp or tls) are right",
    )


def _tls_problem(address: SchedulerAddress, error: ssl.SSLError) -> InvalidInput:
    if isinstance(error, ssl.SSLCertVerificationError):
        return InvalidInput(
            f"the certificate of the scheduler at {address} is not valid: {error.verify_message}",
            hint="give the certificate authority of the cluster: --tls-ca FILE",
        )
    if "ALERT" in (error.reason or "") or "CERTIFICATE" in (error.reason or ""):
        return InvalidInput(
            f"the scheduler at {address} refused the client certificate: {error.reason}",
            hint="give a certificate of the cluster's authority and its key: --tls-cert FILE --tls-key FILE",
        )
    return _unreachable(address, f"TLS failed: {error.reason or error}")
