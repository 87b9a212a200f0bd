#!/usr/bin/env python3
"""wire.py DEVICE DEVICE: a cable between two network devices, in user space. It delays, loses and limits packets.

Reads commands from stdin, one a line: "delay MS", "loss FRACTION", "rate BITS_PER_SECOND", "block in|out", "only
PORT" (all other TCP packets are lost). "out" is from the first device to the second. Answers each with a line "ok".
The devices' offloads must be off (offloads_off), because a packet that is larger than the MTU, or has no checksum,
cannot be sent on.
"""

import collections
import ctypes
import fcntl
import random
import select
import socket
import struct
import sys
import time

QUEUE_S = 0.3  # of a direction with a rate: what comes when the queue is that long is lost


def offloads_off(device):
    """Call it in the namespace of the device."""
    set_tx_checksum, set_scatter_gather, set_tso, set_gso = 0x17, 0x19, 0x1f, 0x24
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in (set_tso, set_gso, set_scatter_gather, set_tx_checksum):
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            fcntl.ioctl(any_socket, 0x8946, struct.pack("16sP16x", device.encode(), ctypes.addressof(value)))


def tcp_ports(frame):
    """() if it is no TCP packet over IPv4."""
    if frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_TCP:
        return ()
    return struct.unpack_from("!HH", frame, 14 + 4 * (frame[14] & 15))


class Direction:
    def __init__(self, source, target):
        self.source, self.target = source, target
        self.waiting = collections.deque()  # (time to send, frame)
        self.free_at = 0.0
        self.blocked = False

    def take(self, wire, now):
        frame, (_, _, kind, *_) = self.source.recvfrom(65535)
        if kind == socket.PACKET_OUTGOING or self.blocked or wire.random.random() < wire.loss:
            return
        ports = tcp_ports(frame) if wire.only else ()
        if ports and wire.only not in ports:
            return
        due = now
        if wire.rate:
            if self.free_at - now > QUEUE_S:
                return
            self.free_at = due = max(now, self.free_at) + 8 * len(frame) / wire.rate
        self.waiting.append((due + wire.delay, frame))

    def send_due(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            try:
                self.target.send(self.waiting.popleft()[1])
            except OSError:
                pass  # the device is down: the packet is lost


class Wire:
    def __init__(self, near, far):
        self.delay, self.loss, self.rate = 0.0, 0.0, 0.0
        self.only = None
        self.random = random.Random(1)
        ends = []
        for device in (near, far):
            ends.append(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)))  # ETH_P_ALL
            ends[-1].bind((device, 0))
        self.out, self.back = Direction(*ends), Direction(*reversed(ends))

    def obey(self, command):
        name, value = command.split()
        if name == "block":
            self.out.blocked, self.back.blocked = value == "out", value == "in"
        elif name == "only":
            self.only = int(value)
        elif name == "delay":
            self.delay = float(value) / 1000
        else:
            setattr(self, {"loss": "loss", "rate": "rate"}[name], float(value))

    def run(self):
        directions = {self.out.source: self.out, self.back.source: self.back}
        print("ok", flush=True)
        while True:
            due = [direction.waiting[0][0] for direction in directions.values() if direction.waiting]
            wait = max(0.0, min(due) - time.monotonic()) if due else None
            ready, _, _ = select.select([sys.stdin, *directions], [], [], wait)
            now = time.monotonic()
            for one in ready:
                if one in directions:
                    directions[one].take(self, now)
                    continue
                command = sys.stdin.readline()
                if not command:
                    return
                self.obey(command)
                print("ok", flush=True)
            for direction in directions.values():
                direction.send_due(now)


if __name__ == "__main__":
    if sys.argv[1] == "offloads-off":
        offloads_off(sys.argv[2])
    else:
        Wire(*sys.argv[1:]).run()
