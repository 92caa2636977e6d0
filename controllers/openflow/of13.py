"""Messages and reports in OpenFlow 1.3 and 1.5, encoded by os-ken.

Version 1.5 is needed for groups: in earlier versions a group cannot specify its hash, and Open vSwitch 3.1
then sends all flows between two hosts the same way. The property for the hash is Netronome's extension
`_Hashing`, which os-ken does not have.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc

from controllers.hashing import PROTO_TCP, PROTO_UDP
from controllers.openflow.messages import (
    ARP_PRIORITY,
    ETHERTYPE_ARP,
    ETHERTYPE_IPV4,
    PUNT_PRIORITY,
    Barrier,
    Clear,
    Confirmed,
    CounterReply,
    DropChoice,
    Echo,
    Features,
    Hello,
    Install,
    Message,
    PacketIn,
    PortCounter,
    Ports,
    Punt,
    Refusal,
    Remove,
    Removed,
    Report,
    RuleCount,
    Send,
    SetChoice,
)
from controllers.rules import Choice, Match

HEADER_BYTES = 8
OPENFLOW_13, OPENFLOW_15 = 4, 6
_NAMES = {1: "1.0", 2: "1.1", 3: "1.2", OPENFLOW_13: "1.3", 5: "1.4", OPENFLOW_15: "1.5"}
_EXPERIMENTER_PROPERTY = 0xFFFF
_NETRONOME, _SELECTION_METHOD = 0x0000154D, 1
_PORT_FIELDS = {PROTO_TCP: ("tcp_src", "tcp_dst"), PROTO_UDP: ("udp_src", "udp_dst")}


def version_name(version: int) -> str:
    return _NAMES.get(version, f"of wire version {version}")


def message_length(header: bytes) -> int:
    """Return the length of the message that begins with these 8 bytes. Raises ValueError if invalid."""
    length = int(struct.unpack_from("!xxH", header)[0])
    if length < HEADER_BYTES:
        raise ValueError(f"a message of {length} bytes")
    return length


class Codec:
    """An encoder and decoder for one version of OpenFlow."""

    def __init__(self, version: int = OPENFLOW_13) -> None:
        self.version = version
        self._protocol: Any = ProtocolDesc(version)
        self._of: Any = self._protocol.ofproto
        self._parser: Any = self._protocol.ofproto_parser

    # Messages to switches.

    def encode(self, message: Message) -> bytes:
        """Return the bytes of one message, which may become several OpenFlow messages."""
        encoders: dict[type, Callable[[Any], Iterable[Any]]] = {
            Clear: self._clear,
            Install: self._install,
            Remove: self._remove,
            SetChoice: self._set_choice,
            DropChoice: self._drop_choice,
            Punt: self._punt,
            Send: self._send,
        }
        if isinstance(message, Barrier):
            return self._bytes(self._parser.OFPBarrierRequest(self._protocol), message.number)
        return b"".join(self._bytes(each) for each in encoders[type(message)](message))

    def hello(self) -> bytes:
        """Return a hello that offers this version only; os-ken's class cannot encode that."""
        header = (self.version, self._of.OFPT_HELLO, 16, 0)
        return struct.pack("!BBHIHHI", *header, self._of.OFPHET_VERSIONBITMAP, 8, 1 << self.version)

    def ask_features(self) -> bytes:
        return self._bytes(self._parser.OFPFeaturesRequest(self._protocol))

    def ask_ports(self) -> bytes:
        return self._bytes(self._parser.OFPPortDescStatsRequest(self._protocol, 0))

    def ask_rule_counts(self, number: int) -> bytes:
        ask = "OFPFlowDescStatsRequest" if self.version >= OPENFLOW_15 else "OFPFlowStatsRequest"
        return self._bytes(getattr(self._parser, ask)(self._protocol, 0), number)

    def ask_port_counts(self, number: int) -> bytes:
        return self._bytes(self._parser.OFPPortStatsRequest(self._protocol, 0, self._of.OFPP_ANY), number)

    def echo(self, number: int) -> bytes:
        return self._bytes(self._parser.OFPEchoRequest(self._protocol), number)

    def answer(self, echo: Echo) -> bytes:
        return self._bytes(self._parser.OFPEchoReply(self._protocol, data=echo.data), echo.number)

    def _bytes(self, message: Any, number: int = 0) -> bytes:
        message.set_xid(number)
        message.serialize()
        return bytes(message.buf)

    def _flow_mod(self, match: Any, priority: int, instructions: Any = (), **options: int) -> Any:
        everywhere = {"out_port": self._of.OFPP_ANY, "out_group": self._of.OFPG_ANY}
        return self._parser.OFPFlowMod(
            self._protocol,
            match=match,
            priority=priority,
            instructions=list(instructions),
            buffer_id=self._of.OFP_NO_BUFFER,
            **everywhere,
            **options,
        )

    def _clear(self, _message: Clear) -> Iterable[Any]:
        everything = {"command": self._of.OFPFC_DELETE, "table_id": self._of.OFPTT_ALL}
        yield self._flow_mod(self._parser.OFPMatch(), 0, **everything)
        yield self._group_mod(self._of.OFPGC_DELETE, self._of.OFPG_ALL)

    def _install(self, message: Install) -> Iterable[Any]:
        flags = self._of.OFPFF_SEND_FLOW_REM if message.notify else 0
        options = {"command": self._of.OFPFC_ADD, "idle_timeout": message.idle_s, "flags": flags}
        instructions = self._towards(message.to)
        yield self._flow_mod(self._match(message.match), message.priority, instructions, **options)

    def _remove(self, message: Remove) -> Iterable[Any]:
        command = self._of.OFPFC_DELETE_STRICT
        yield self._flow_mod(self._match(message.match), message.priority, command=command)

    def _punt(self, message: Punt) -> Iterable[Any]:
        ethertype, priority = (
            (ETHERTYPE_ARP, ARP_PRIORITY) if message.arp else (ETHERTYPE_IPV4, PUNT_PRIORITY)
        )
        up = self._parser.OFPActionOutput(self._of.OFPP_CONTROLLER, self._of.OFPCML_NO_BUFFER)
        yield self._flow_mod(self._parser.OFPMatch(eth_type=ethertype), priority, self._apply(up))

    def _send(self, message: Send) -> Iterable[Any]:
        out = [self._parser.OFPActionOutput(message.port)]
        origin = {"in_port": self._of.OFPP_CONTROLLER}
        if self.version >= OPENFLOW_15:
            origin = {"match": self._parser.OFPMatch(**origin)}
        no_buffer = self._of.OFP_NO_BUFFER
        yield self._parser.OFPPacketOut(
            self._protocol, buffer_id=no_buffer, actions=out, data=message.frame, **origin
        )

    def _set_choice(self, message: SetChoice) -> Iterable[Any]:
        choice = message.choice
        command = self._of.OFPGC_ADD if message.new else self._of.OFPGC_MODIFY
        buckets = [self._bucket(number, each.weight, each.port) for number, each in enumerate(choice.buckets)]
        properties = {"properties": [_Hashing(choice.seed)]} if self.version >= OPENFLOW_15 else {}
        yield self._group_mod(command, choice.number, buckets, **properties)

    def _drop_choice(self, message: DropChoice) -> Iterable[Any]:
        yield self._group_mod(self._of.OFPGC_DELETE, message.number)

    def _group_mod(self, command: int, number: int, buckets: Any = (), **options: Any) -> Any:
        return self._parser.OFPGroupMod(
            self._protocol, command, self._of.OFPGT_SELECT, number, buckets=list(buckets), **options
        )

    def _bucket(self, number: int, weight: int, port: int) -> Any:
        actions = [self._parser.OFPActionOutput(port)]
        if self.version < OPENFLOW_15:
            return self._parser.OFPBucket(
                weight=weight, watch_port=self._of.OFPP_ANY, watch_group=self._of.OFPG_ANY, actions=actions
            )
        weighing = self._parser.OFPGroupBucketPropWeight(
            type_=self._of.OFPGBPT_WEIGHT, weight=weight, length=self._of.OFP_GROUP_BUCKET_PROP_WEIGHT_SIZE
        )
        return self._parser.OFPBucket(bucket_id=number, actions=actions, properties=[weighing])

    def _apply(self, action: Any) -> list[Any]:
        return [self._parser.OFPInstructionActions(self._of.OFPIT_APPLY_ACTIONS, [action])]

    def _towards(self, to: int | Choice | None) -> list[Any]:
        if to is None:
            return []
        if isinstance(to, Choice):
            return self._apply(self._parser.OFPActionGroup(to.number))
        return self._apply(self._parser.OFPActionOutput(to))

    def _match(self, match: Match) -> Any:
        fields: dict[str, Any] = {"eth_type": ETHERTYPE_IPV4}
        mask = (0xFFFFFFFF << (32 - match.bits)) & 0xFFFFFFFF
        fields["ipv4_dst"] = match.dst if match.bits == 32 else (match.dst, mask)
        if match.src is not None:
            fields["ipv4_src"] = match.src
        if match.proto is not None:
            fields["ip_proto"] = match.proto
            for name, port in zip(
                _PORT_FIELDS.get(match.proto, ()), (match.sport, match.dport), strict=False
            ):
                if port is not None:
                    fields[name] = port
        return self._parser.OFPMatch(**fields)

    # Messages from switches.

    def decode(self, data: bytes) -> Report | None:
        """Decode one complete message; None for irrelevant ones. Raises ValueError if it is invalid."""
        if len(data) < HEADER_BYTES or message_length(data) != len(data):
            raise ValueError(f"a message of {len(data)} bytes whose header gives another length")
        version, kind, length, number = ofproto_parser.header(data)
        if kind == self._of.OFPT_HELLO:
            return self._hello(data)
        if version != self.version:
            raise ValueError(f"a message in version {version_name(version)}")
        try:
            return self._read(ofproto_parser.msg(self._protocol, version, kind, length, number, data))
        except Exception as error:  # os-ken's parsers raise exceptions of many types
            raise ValueError(f"a message of type {kind} that cannot be read ({error!r:.200})") from error

    def _read(self, message: Any) -> Report | None:
        if message is None:
            raise ValueError("no such type")
        readers: dict[str, Callable[[Any], Report | None]] = {
            "OFPSwitchFeatures": lambda m: Features(m.datapath_id),
            "OFPPacketIn": lambda m: PacketIn(m.match["in_port"], bytes(m.data)),
            "OFPPortStatus": self._port_changed,
            "OFPPortDescStatsReply": self._ports,
            "OFPFlowRemoved": self._removed,
            "OFPBarrierReply": lambda m: Confirmed(m.xid),
            "OFPEchoRequest": lambda m: Echo(True, m.xid, bytes(m.data or b"")),
            "OFPEchoReply": lambda m: Echo(False, m.xid, bytes(m.data or b"")),
            "OFPFlowStatsReply": self._rule_counts,
            "OFPFlowDescStatsReply": self._rule_counts,
            "OFPPortStatsReply": self._port_counts,
            "OFPErrorMsg": self._refusal,
        }
        reader = readers.get(type(message).__name__)
        return reader(message) if reader else None

    def _hello(self, data: bytes) -> Hello:
        """Decode a hello here, because switches send it in their own highest version (OpenFlow 1.3, section
        6.3.1)."""
        version, offset = data[0], HEADER_BYTES
        while offset + 4 <= len(data):
            kind, length = struct.unpack_from("!HH", data, offset)
            if kind == self._of.OFPHET_VERSIONBITMAP and length >= 8 and offset + 8 <= len(data):
                bits = struct.unpack_from("!I", data, offset + 4)[0]
                return Hello(frozenset(bit for bit in range(32) if bits >> bit & 1))
            offset += max(length + 7 & ~7, 8)
        return Hello(frozenset(range(1, version + 1)))

    def _is_up(self, port: Any) -> bool:
        return not (port.config & self._of.OFPPC_PORT_DOWN or port.state & self._of.OFPPS_LINK_DOWN)

    def _port_changed(self, message: Any) -> Ports | None:
        port = message.desc
        if port.port_no > self._of.OFPP_MAX:
            return None
        return Ports({port.port_no: self._is_up(port) and message.reason != self._of.OFPPR_DELETE})

    def _ports(self, message: Any) -> Ports:
        ports = {
            port.port_no: self._is_up(port) for port in message.body if port.port_no <= self._of.OFPP_MAX
        }
        return Ports(ports, self._is_last(message))

    def _removed(self, message: Any) -> Removed | None:
        match = _match_of(message.match)
        return Removed(match, message.priority) if match else None

    def _rule_counts(self, message: Any) -> CounterReply:
        counts = []
        for entry in message.body:
            match = _match_of(entry.match)
            if match is not None:
                packets, octets = self._counted(entry)
                counts.append(RuleCount(match, entry.priority, packets, octets))
        return CounterReply(message.xid, tuple(counts), self._is_last(message))

    def _counted(self, entry: Any) -> tuple[int, int]:
        if self.version >= OPENFLOW_15:
            return entry.stats["packet_count"], entry.stats["byte_count"]
        return entry.packet_count, entry.byte_count

    def _port_counts(self, message: Any) -> CounterReply:
        counts = [
            PortCounter(each.port_no, each.tx_bytes, each.tx_packets, each.tx_dropped)
            for each in message.body
            if each.port_no <= self._of.OFPP_MAX
        ]
        return CounterReply(message.xid, tuple(counts), self._is_last(message))

    def _is_last(self, message: Any) -> bool:
        return not message.flags & self._of.OFPMPF_REPLY_MORE

    def _refusal(self, message: Any) -> Refusal:
        kind = self._of.ofp_error_type_to_str(message.type)
        code = self._of.ofp_error_code_to_str(message.type, message.code)
        return Refusal(message.xid, f"{kind}, {code}")


def _match_of(match: Any) -> Match | None:
    """Return the match of a rule; None for rules without an IPv4 destination."""
    fields = dict(match.items())
    if "ipv4_dst" not in fields:
        return None
    dst, bits = fields["ipv4_dst"], 32
    if isinstance(dst, tuple):
        dst, mask = dst
        bits = bin(int.from_bytes(bytes(int(octet) for octet in str(mask).split(".")), "big")).count("1")
    proto = fields.get("ip_proto")
    ports = [fields.get(name) for name in _PORT_FIELDS.get(proto or 0, ("", ""))]
    return Match(dst, bits, fields.get("ipv4_src"), proto, ports[0], ports[1])


class _Hashing:
    """Group property: choose by a hash of the 5-tuple with this seed (Netronome's extension; in Open vSwitch
    `lib/ofp-group.c`, ovs-ofctl(8) "selection_method"). With `dp_hash` the datapath computes the hash."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def serialize(self) -> bytearray:
        method = b"dp_hash".ljust(16, b"\0")
        body = struct.pack("!IIxxxx16sQ", _NETRONOME, _SELECTION_METHOD, method, self._seed)
        length = 4 + len(body)
        return bytearray(struct.pack("!HH", _EXPERIMENTER_PROPERTY, length) + body + bytes(-length % 8))
