#!/usr/bin/env python3
"""A web server on the loopback interface that serves a folder; each request's path selects correct or faulty behaviour.

    server.py FOLDER LOG

Prints its port, then one line into LOG per request, before the answer's body: the path, the Range asked for (or -), the
status, and how many bytes of body will go out. It ends with the process that started it.

A path is /BEHAVIOUR[-NUMBER]/NAME. The "first" ones are bad at the first request of that path only.
"""
import collections
import ctypes
import http.server
import os
import pathlib
import re
import signal
import socketserver
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
CHUNK = 1 << 16


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = None
    log = None
    seen = collections.Counter()
    lock = threading.Lock()

    def do_GET(self):
        path = re.sub(r"^http://[^/]*", "", self.path)  # a proxy gets a full URL
        behaviour, name = path.lstrip("/").split("/", 1)
        word, _, number = behaviour.partition("-")
        self.asked = self.headers.get("Range")
        with self.lock:
            self.seen[path] += 1
            self.first = self.seen[path] == 1
        answer = getattr(self, "do_" + word, None)
        file = self.folder / name
        if answer is None or not file.is_file():
            return self.refuse(404)
        answer(file.read_bytes(), int(number or 0), name)

    def note(self, status, count):
        with self.lock, open(self.log, "a") as log:
            log.write(f"{self.path} {self.asked or '-'} {status} {count}\n")

    def refuse(self, status, *headers):
        page = b"<html>no</html>"
        self.note(status, 0)
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.send_header("Content-Length", str(len(page)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(page)

    def begin(self, data):
        """The status and the bytes that a correct server sends."""
        match = re.fullmatch(r"bytes=(\d+)-", self.asked or "")
        if not match:
            return 200, 0, data
        first = int(match.group(1))
        return (206, first, data[first:]) if first < len(data) else (416, 0, b"")

    def send(self, data, send=None, pace=None):
        """`send` bytes of the answer go out; all of them by default."""
        status, start, body = self.begin(data)
        send = len(body) if send is None else min(send, len(body))
        self.note(status, send)
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        for at in range(0, send, pace or CHUNK):
            self.wfile.write(body[at : min(at + (pace or CHUNK), send)])
            self.wfile.flush()
            if pace:
                time.sleep(0.02)

    def do_plain(self, data, number, name):
        self.send(data)

    def do_cut(self, data, number, name):
        self.send(data, send=number)

    def do_corrupt(self, data, number, name):
        self.send(data[:number] + bytes([data[number] ^ 1]) + data[number + 1 :])

    def do_status(self, data, number, name):
        self.refuse(number)

    def do_firststatus(self, data, number, name):
        self.refuse(number) if self.first else self.send(data)

    def do_stall(self, data, number, name):
        self.send(data, send=number)
        time.sleep(60)

    def do_slow(self, data, number, name):
        self.send(data, pace=number)

    def do_tofile(self, data, number, name):
        self.refuse(302, ("Location", (self.folder / name).as_uri()))

    def do_toplain(self, data, number, name):
        self.refuse(302, ("Location", "/plain/" + name))

    def log_message(self, *_):
        pass


def main():
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(0)
    Handler.folder, Handler.log = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    # Not http.server's class: it looks up a name for the address.
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # clients that disconnect are part of the tests
    print(server.server_address[1], flush=True)
    server.serve_forever()


main()
