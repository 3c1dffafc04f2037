"""The settings of a dashboard."""

import re
from dataclasses import dataclass, field

from lonnymq.calls import argument
from lonnymq.dashboard.networks import Networks
from lonnymq.errors import invalid

# Classes of the style sheet: the policy for contents allows no other styles.
COLOURS = ("grey", "blue", "green", "yellow", "orange", "red", "purple")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
# Beyond the statements' own limit, for connecting and for several statements.
GRACE_S = 5.0
HOST = re.compile(r"(\*\.)?[a-z0-9._-]{1,255}|\[[0-9a-f:.]{2,45}\]")


@dataclass(frozen=True, kw_only=True)
class DashboardSettings:
    """Settings of a dashboard. `hosts` are the names under which browsers may reach it, without ports."""

    # Shown in the header of each page, so that production is not taken for a test.
    environment: str = ""
    colour: str = "grey"
    # "*.example.com" allows all hosts below that one.
    hosts: tuple[str, ...] = LOCAL_HOSTS
    # Networks of proxies, such as "10.0.0.0/8". Their X-Forwarded-Proto says whether browsers use TLS.
    proxies: tuple[str, ...] = ()
    # Signs the tokens of forms. Several processes that serve one dashboard need the same one.
    secret: bytes | None = field(default=None, repr=False)
    # A slower statement is cancelled.
    statement_timeout_s: float = 5.0
    # How often the queue is looked at while somebody looks at the dashboard.
    sample_s: float = 2.0

    def __post_init__(self) -> None:
        argument.text("environment", self.environment, 0, 40)
        if self.colour not in COLOURS:
            raise invalid("colour", self.colour, f"one of {', '.join(COLOURS)}")
        for host in self.hosts:
            if not HOST.fullmatch(host):
                raise invalid("hosts", host, "names such as queue.example.com, without scheme and port")
        Networks("proxies", self.proxies)
        if self.secret is not None and len(self.secret) < 16:
            raise invalid("secret", f"{len(self.secret)} bytes", "16 bytes or more")
        argument.seconds_between("statement_timeout_s", self.statement_timeout_s, 0.1, 60)
        argument.seconds_between("sample_s", self.sample_s, 0.5, 60)

    @property
    def answer_s(self) -> float:
        """How long to wait for answers of the database: beyond the statements' limit, for connecting."""
        return self.statement_timeout_s + GRACE_S

    def allows_host(self, header: str) -> bool:
        """Whether a Host header names this dashboard; another one means that its name is an attacker's."""
        host = re.sub(r":[0-9]{1,5}$", "", header.lower())
        return HOST.fullmatch(host) is not None and any(
            host == one or (one.startswith("*.") and host.endswith(one[1:]) and host != one[1:])
            for one in self.hosts
        )
