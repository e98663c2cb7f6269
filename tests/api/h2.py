# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frames by hand (RFC 9113), for what no client would do: each request's headers are literals, of answers only what
stands outside HPACK is read (flags, bodies)."""
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
FRAME_BYTES = 16384
SETTINGS_INITIAL_WINDOW = 4
WINDOW = 1 << 30


class Frame:
    def __init__(self, type, flags, stream, payload):
        self.type, self.flags, self.stream, self.payload = type, flags, stream, payload

    def __repr__(self):
        return f"Frame(type={self.type}, flags={self.flags}, stream={self.stream}, {self.payload[:60]!r})"


class Http2:
    """One connection. The windows are opened wide unless told otherwise."""

    def __init__(self, server, timeout=30, window=WINDOW, context=None):
        context = context or server.context()
        context.set_alpn_protocols(["h2"])
        import socket
        raw = socket.create_connection(("127.0.0.1", server.port), timeout=timeout)
        self.socket = context.wrap_socket(raw, server_hostname="127.0.0.1")
        assert self.socket.selected_alpn_protocol() == "h2"
        self.buffer, self.next_stream, self.port = b"", 1, server.port
        self.socket.sendall(PREFACE + self.frame(SETTINGS, 0, 0, struct.pack(">HI", SETTINGS_INITIAL_WINDOW, window)))
        if window == WINDOW:
            self.send(WINDOW_UPDATE, 0, 0, struct.pack(">I", WINDOW))

    @staticmethod
    def frame(type, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", type, flags, stream) + payload

    def send(self, type, flags, stream, payload=b""):
        self.socket.sendall(self.frame(type, flags, stream, payload))

    def headers(self, method, path, fields=()):
        """Literal fields without indexing (RFC 7541 6.2.2)."""
        out = b""
        for name, value in ((":method", method), (":scheme", "https"), (":path", path), (":authority", f"127.0.0.1:{self.port}"), *fields):
            name, value = name.encode(), value.encode()
            out += b"\0" + self.length(len(name)) + name + self.length(len(value)) + value
        return out

    @staticmethod
    def length(n):
        """An integer with a prefix of seven bits (RFC 7541 5.1)."""
        if n < 127:
            return bytes([n])
        out, n = b"\x7f", n - 127
        while n >= 128:
            out, n = out + bytes([n % 128 + 128]), n // 128
        return out + bytes([n])

    def request(self, method, path, body=None, fields=(), ends=True):
        """Begins a stream and returns its number; ends=False leaves the body open."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        if body is not None:
            fields = (*fields, ("content-type", "application/json"))
        block = self.headers(method, path, fields)
        end = END_STREAM if ends and body is None else 0
        first, rest = block[:FRAME_BYTES], block[FRAME_BYTES:]
        self.send(HEADERS, end | (0 if rest else END_HEADERS), stream, first)
        while rest:
            piece, rest = rest[:FRAME_BYTES], rest[FRAME_BYTES:]
            self.send(CONTINUATION, 0 if rest else END_HEADERS, stream, piece)
        if body is not None:
            self.data(stream, body, ends)
        return stream

    def data(self, stream, body, ends=True):
        for i in range(0, max(len(body), 1), FRAME_BYTES):
            is_last = i + FRAME_BYTES >= len(body)
            self.send(DATA, END_STREAM if ends and is_last else 0, stream, body[i:i + FRAME_BYTES])

    def read(self):
        """The next frame, or None at an orderly end. Settings and pings are answered here."""
        while True:
            while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
                piece = self.socket.recv(65536)
                if not piece:
                    assert not self.buffer, f"the connection ends inside a frame: {self.buffer[:40]!r}"
                    return None
                self.buffer += piece
            n = 9 + int.from_bytes(self.buffer[:3], "big")
            type, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            frame, self.buffer = Frame(type, flags, stream, self.buffer[9:n]), self.buffer[n:]
            if type == SETTINGS and not flags & ACK:
                self.send(SETTINGS, ACK, 0)
            elif type == PING and not flags & ACK:
                self.send(PING, ACK, 0, frame.payload)
            elif type not in (SETTINGS, PING, WINDOW_UPDATE):
                return frame

    def answer(self, stream):
        """Reads to the end of the stream: (its body, the frames of everything else)."""
        body, others = b"", []
        while True:
            frame = self.read()
            assert frame, f"the connection ended before stream {stream}"
            if frame.stream != stream:
                others.append(frame)
                continue
            assert frame.type != RST_STREAM, frame
            if frame.type == DATA:
                body += frame.payload
            if frame.flags & END_STREAM:
                return body, others

    def close(self):
        self.socket.close()
