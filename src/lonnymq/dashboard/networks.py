"""Networks from which headers are believed."""

import ipaddress
from collections.abc import Iterable

from starlette.requests import Request

from lonnymq.errors import invalid

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
# A server that listens on both families may state addresses of IPv4 in this way.
MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")


class Networks:
    """The networks of proxies."""

    def __init__(self, name: str, networks: Iterable[str]) -> None:
        """`name` is that of the argument, for an error."""
        networks = tuple(networks)
        try:
            self._networks = [_unmapped(ipaddress.ip_network(network)) for network in networks]
        except ValueError as error:
            raise invalid(name, list(networks), f"networks such as 10.0.0.0/8 ({error})") from None

    def include(self, request: Request) -> bool:
        """Whether the request came directly from an address in one of them."""
        try:
            address = ipaddress.ip_address(request.client.host if request.client else "")
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._networks)


def _unmapped(network: Network) -> Network:
    """Return a network of IPv4 addresses that was written as one of IPv6 as what it is."""
    if network.version == 6 and network.subnet_of(MAPPED):
        address = network.network_address.ipv4_mapped
        return ipaddress.IPv4Network((int(address or 0), network.prefixlen - MAPPED.prefixlen))
    return network
