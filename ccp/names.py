"""Names of algorithms (`ccp:reno`), of users' files, and of a program that is alone. Loads none of them."""

from __future__ import annotations

PREFIX = "ccp:"
SUFFIX = ".py"
SHIPPED: dict[str, str] = {
    "reno": "Reno in an agent: slow start and AIMD once per round trip",
    "cubic": "CUBIC (RFC 9438) in an agent",
    "bbr": "BBR version 1 in an agent",
    "copa": "Copa (Arun and Balakrishnan, NSDI 2018) in an agent",
    "vegas": "Vegas in an agent: keeps a few packets in the queue",
    "swift": "Swift (Kumar et al., SIGCOMM 2020) in an agent: holds the delay at a target",
    "timely": "TIMELY (Mittal et al., SIGCOMM 2015) in an agent: follows the delay's gradient",
    "hpcc": "HPCC (Li et al., SIGCOMM 2019) in an agent: keeps queues empty by what switches measure",
    "aggregate": "one Reno window for all flows to a destination, in an agent",
}
"""Titles by name; each is ccp/algorithms/<name>.py."""
ONLY = "main"
"""The program of an algorithm that has one."""


class OwnAlgorithm(str):
    """The name of a user's file, with its text."""

    text: str

    def __new__(cls, name: str, text: str) -> OwnAlgorithm:
        made = super().__new__(cls, name)
        made.text = text
        return made


def is_agents(cc: str) -> bool:
    """Return whether a congestion control of this name runs in an agent."""
    return cc.startswith(PREFIX) or cc.endswith(SUFFIX)
