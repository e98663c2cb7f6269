# SPDX-License-Identifier: Apache-2.0
"""The protobuf wire format, driven by the field tables in tests/data: the EVE messages as plain dictionaries.

    data = encode("info.ZInfoMsg", {"ztype": "ZiDevice", "devId": "...", "dinfo": {"machineArch": "x86_64"}})
    message = decode("info.ZInfoMsg", data)      # {"ztype": 1, "devId": "...", "dinfo": {...}}

Names are those of the tables, packages without `org.lfedge.eve.`. Enums are written by name or number and read as numbers
(number() and name() convert). A Timestamp is {"seconds": .., "nanos": ..} (timestamp() makes one). Values equal to their default
are not written, messages always are. What decode() does not know it keeps under the key "?" as (number, wire type, value)."""
import csv
import pathlib
import struct
import time

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
PREFIX = "org.lfedge.eve."
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
NUMBERS = {"uint32", "uint64", "int32", "int64", "sint32", "sint64", "bool"}


class Malformed(Exception):
    pass


class Field:
    def __init__(self, name, number, kind, label):
        self.name, self.number, self.is_repeated, self.is_map = name, number, label == "repeated", label == "map"
        self.kind = kind[len(PREFIX):] if kind.startswith(PREFIX) else kind
        if self.is_map:
            key, value = kind[len("map<"):-1].split(":")
            self.entry = {1: Field("key", 1, key, ""), 2: Field("value", 2, value, "")}


def _load():
    messages = {"google.protobuf.Timestamp": {1: Field("seconds", 1, "int64", ""), 2: Field("nanos", 2, "int32", "")}}
    enums = {}
    with open(DATA / "messages.csv", newline="") as f:
        for row in csv.DictReader(f):
            fields = messages.setdefault(f"{row['package'][len(PREFIX):]}.{row['message']}", {})
            if row["field"]:
                fields[int(row["number"])] = Field(row["field"], int(row["number"]), row["type"], row["label"])
    with open(DATA / "enums.csv", newline="") as f:
        for row in csv.DictReader(f):
            enums.setdefault(f"{row['package'][len(PREFIX):]}.{row['enum']}", {})[row["value_name"]] = int(row["number"])
    return messages, enums


MESSAGES, ENUMS = _load()


def number(enum, value_name):
    return ENUMS[enum][value_name]


def name(enum, value):
    return next(n for n, v in ENUMS[enum].items() if v == value)


def timestamp(seconds=None):
    """A Timestamp of a Unix time, of now without one."""
    ns = time.time_ns() if seconds is None else round(seconds * 1e9)
    return {"seconds": ns // 10**9, "nanos": ns % 10**9}


# ---- writing

def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _scalar(kind, value):
    """(wire type, bytes, is it the default) of one value that is not a message."""
    if kind in ENUMS:
        value = number(kind, value) if isinstance(value, str) else value
        return VARINT, varint(value), value == 0
    if kind.startswith("sint"):
        return VARINT, varint(value * 2 if value >= 0 else -value * 2 - 1), value == 0
    if kind in NUMBERS:
        return VARINT, varint(int(value)), not value
    if kind == "double":
        return FIXED64, struct.pack("<d", value), value == 0
    if kind == "float":
        return FIXED32, struct.pack("<f", value), value == 0
    data = value.encode() if kind == "string" else bytes(value)
    return BYTES, varint(len(data)) + data, not data


def tag(field_number, wire_type):
    return varint(field_number << 3 | wire_type)


def delimited(field_number, data):
    return tag(field_number, BYTES) + varint(len(data)) + data


def _encode_one(field, value, is_default_written):
    if field.kind in MESSAGES:
        return delimited(field.number, encode(field.kind, value))
    wire_type, data, is_default = _scalar(field.kind, value)
    return tag(field.number, wire_type) + data if is_default_written or not is_default else b""


def _encode_field(field, value):
    if field.is_map:
        return b"".join(delimited(field.number, b"".join(_encode_one(field.entry[i], v, True) for i, v in ((1, k), (2, v)))) for k, v in value.items())
    if not field.is_repeated:
        return _encode_one(field, value, False)
    if field.kind in ENUMS or field.kind in NUMBERS or field.kind in ("float", "double"):
        return delimited(field.number, b"".join(_scalar(field.kind, v)[1] for v in value)) if value else b""
    return b"".join(_encode_one(field, v, True) for v in value)


def encode(message, values):
    """The bytes of a message; a name the table lacks is an error."""
    by_name = {f.name: f for f in MESSAGES[message].values()}
    return b"".join(_encode_field(by_name[k], v) for k, v in sorted(values.items(), key=lambda i: by_name[i[0]].number) if v is not None)


# ---- reading

def read_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("varint")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def parts(data):
    """Yields (number, wire type, value) for every field there is."""
    at = 0
    while at < len(data):
        head, at = read_varint(data, at)
        wire_type = head & 7
        if wire_type == VARINT:
            value, at = read_varint(data, at)
        else:
            if wire_type == BYTES:
                n, at = read_varint(data, at)
            elif wire_type in (FIXED64, FIXED32):
                n = 8 if wire_type == FIXED64 else 4
            else:
                raise Malformed(f"wire type {wire_type}")
            if at + n > len(data):
                raise Malformed("short")
            value, at = bytes(data[at:at + n]), at + n
        yield head >> 3, wire_type, value


def _from_varint(kind, value):
    if kind == "bool":
        return bool(value)
    if kind.startswith("sint"):
        return value >> 1 ^ -(value & 1)
    if kind in ("int32", "int64") or kind in ENUMS:
        return value - 2**64 if value >= 2**63 else value
    return value


def _decode_one(field, wire_type, value):
    if wire_type == VARINT:
        return _from_varint(field.kind, value)
    if wire_type in (FIXED64, FIXED32):
        return struct.unpack("<d" if wire_type == FIXED64 else "<f", value)[0]
    if field.kind in MESSAGES:
        return decode(field.kind, value)
    return value.decode() if field.kind == "string" else value


def _decode_packed(field, data):
    if field.kind in ("double", "float"):
        n = 8 if field.kind == "double" else 4
        return [struct.unpack("<d" if n == 8 else "<f", data[i:i + n])[0] for i in range(0, len(data), n)]
    out, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        out.append(_from_varint(field.kind, value))
    return out


def decode(message, data):
    """The fields that are present, by name."""
    out = {}
    for field_number, wire_type, value in parts(data):
        field = MESSAGES[message].get(field_number)
        if field is None:
            out.setdefault("?", []).append((field_number, wire_type, value))
        elif field.is_map:
            entry = {n: _decode_one(field.entry[n], w, v) for n, w, v in parts(value)}
            out.setdefault(field.name, {})[entry.get(1, "")] = entry.get(2)
        elif not field.is_repeated:
            out[field.name] = _decode_one(field, wire_type, value)
        elif wire_type == BYTES and field.kind not in MESSAGES and field.kind not in ("string", "bytes"):
            out.setdefault(field.name, []).extend(_decode_packed(field, value))
        else:
            out.setdefault(field.name, []).append(_decode_one(field, wire_type, value))
    return out
