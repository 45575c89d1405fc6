# SPDX-License-Identifier: BSD-3-Clause
"""What a program writes, and what a copy of its pool has of that: for operators.py."""
import ctypes
import hashlib
import mmap
import os
import random
import signal
import struct
import sys
import time

BUILD = os.environ["BUILD"]
BLOCK = 4096
BLOCKS = 256
SIZE = BLOCKS * BLOCK
JOURNAL = struct.Struct("<8Q")  # of a program: opened, begun, acked, errors, longest call in us, closed, 0, 0
OPENED, BEGUN, ACKED, ERRORS, WORST, CLOSED = range(6)
HEAD = struct.Struct("<4sIQ")  # of a block: mark, program, update


# ---- the program ----

def update_of(era, number, torn):
    """The ranges of an update, and their bytes; by the first one a program settles what the one before left half done."""
    r = random.Random(f"{era}:{number}")
    if number == 1:
        blocks, length = sorted({0, *torn}), BLOCK
    elif r.random() < 0.06:
        first = r.randrange(BLOCKS - 24)
        blocks, length = range(first, first + r.randrange(2, 24)), BLOCK
    else:
        blocks = [r.randrange(16) * 16 if r.random() < 0.5 else r.randrange(BLOCKS)]
        length = r.choice((64, 200, 512, BLOCK))
    for block in blocks:
        seed = f"{era}:{number}:{block}".encode()
        yield block, HEAD.pack(b"OPER", era, number) + hashlib.shake_128(seed).digest(length - HEAD.size)


def program(path, journal, era, pause_us, torn, *settings):
    """Writes until SIGTERM. What it has come to is in the journal, which outlives it."""
    era, pause, torn = int(era), int(pause_us) / 1e6, [int(t) for t in torn.split(",") if t]
    lib = ctypes.CDLL(BUILD + "/librepl.so")
    lib.repl_errormsg.restype = ctypes.c_char_p
    with open(path, "r+b") as file, open(journal, "r+b") as kept:
        pool, words = mmap.mmap(file.fileno(), 0), memoryview(mmap.mmap(kept.fileno(), 0)).cast("Q")
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    config, handle = ctypes.c_void_p(), ctypes.c_void_p()
    lib.repl_config_new(ctypes.byref(config))
    for setting in settings:
        key, value = setting.split("=", 1)
        if lib.repl_config_set(config, key.encode(), value.encode()):
            sys.exit(f"config: {lib.repl_errormsg().decode()}")
    address = ctypes.addressof(ctypes.c_char.from_buffer(pool))
    if lib.repl_open(config, ctypes.c_void_p(address), ctypes.c_size_t(len(pool)), 1, ctypes.byref(handle)):
        print(f"open: {lib.repl_errormsg().decode()}", file=sys.stderr)
        sys.exit(4)
    words[OPENED] = 1
    lanes = lib.repl_lanes(handle)

    def call(name, *args):
        begin = time.monotonic()
        status = getattr(lib, name)(handle, *args)
        words[WORST] = max(words[WORST], int((time.monotonic() - begin) * 1e6))
        return status

    number = 1
    while not ending:
        words[BEGUN], lane, status = number, number % lanes, 0
        for block, data in update_of(era, number, torn):
            at = block * BLOCK
            pool[at:at + len(data)] = data
            status = status or call("repl_flush", lane, ctypes.c_size_t(at), ctypes.c_size_t(len(data)))
        if status or call("repl_drain", lane):
            words[ERRORS] += 1
            time.sleep(0.02)
            continue
        words[ACKED] = number
        number += 1
        time.sleep(pause)
    status = lib.repl_close(handle)
    if status:
        print(f"close: {lib.repl_errormsg().decode()}", file=sys.stderr)
    words[CLOSED] = 1 - status
    sys.exit(4 if status else 0)


def followed(path, journal, era, pause_us, torn, *_):
    """The same by msync(2), as a program under replctl run."""
    era, pause, torn = int(era), int(pause_us) / 1e6, [int(t) for t in torn.split(",") if t]
    ending = []
    signal.signal(signal.SIGTERM, lambda *_: ending.append(1))
    with open(path, "r+b") as file, open(journal, "r+b") as kept:
        pool, words = mmap.mmap(file.fileno(), 0), memoryview(mmap.mmap(kept.fileno(), 0)).cast("Q")
    number = 1
    while not ending:
        words[BEGUN] = number
        for block, data in update_of(era, number, torn):
            at, begin = block * BLOCK, time.monotonic()
            pool[at:at + len(data)] = data
            pool.flush(at, BLOCK)
            if words[OPENED]:
                words[WORST] = max(words[WORST], int((time.monotonic() - begin) * 1e6))
            words[OPENED] = 1
        words[ACKED] = number
        number += 1
        time.sleep(pause)
    pool.close()
    words[CLOSED] = 1


# ---- what was written, and what a copy has of it ----

class Era:
    """What one program has written: the bytes that it has found, and updates from 1 on."""

    def __init__(self, number, base, parent, torn, journal):
        self.number, self.base, self.parent, self.torn, self.journal = number, base, parent, torn, journal
        self.at, self.image = 0, bytearray(base)

    def words(self):
        with open(self.journal, "rb") as file:
            return JOURNAL.unpack(file.read(JOURNAL.size))

    def expected(self, number):
        if number == 0:
            return self.base
        if number < self.at:
            self.at, self.image = 0, bytearray(self.base)
        while self.at < number:
            self.at += 1
            for block, data in update_of(self.number, self.at, self.torn):
                self.image[block * BLOCK:block * BLOCK + len(data)] = data
        return self.image


def blocks_that_differ(a, b):
    if a == b:
        return set()
    return {i for i in range(BLOCKS) if a[i * BLOCK:i * BLOCK + BLOCK] != b[i * BLOCK:i * BLOCK + BLOCK]}


class History:
    """Positions are (program, update); they form a tree, since a program goes on from what it finds."""

    def __init__(self):
        self.eras = [Era(0, bytes(SIZE), None, [], None)]

    def find(self, image):
        """The position of a copy, and the blocks of the update behind it that are there; (None, None): it has none."""
        last = {}
        for i in range(BLOCKS):
            mark, era, number = HEAD.unpack_from(image, i * BLOCK)
            if mark == b"OPER" and era < len(self.eras):
                last[era] = max(last.get(era, 0), number)
        for era in reversed(self.eras):
            begun = max(era.words()[BEGUN], 1) if era.journal else 0
            most = last.get(era.number, 0)
            for number in (most, most - 1):
                if number < 0 or number > begun:
                    continue
                differ = blocks_that_differ(era.expected(number), image)
                if differ and (number >= begun or
                               not differ <= {b for b, _ in update_of(era.number, number + 1, era.torn)}):
                    continue
                return self.plain((era.number, number)), sorted(differ)
        return None, None

    def plain(self, position):
        while position and position[1] == 0 and self.eras[position[0]].parent:
            position = self.eras[position[0]].parent
        return position

    def within(self, a, b):
        """Whether who is at b has all of a."""
        a, b = self.plain(a), self.plain(b)
        while b and b[0] != a[0]:
            b = self.eras[b[0]].parent
        return bool(b) and a[1] <= b[1] or a[1] == 0 and a[0] == 0


class Record:
    """The sidecar beside a copy: docs/POOL-FORMAT.md, 1.1."""
    STATES = {1: "up-to-date", 2: "inconsistent", 3: "outdated", 4: "unknown"}

    def __init__(self, path):
        slots = []
        with open(path + ".repl", "rb") as file:
            for _ in range(2):
                slot = file.read(4096)
                if slot[:8] == b"REPLSIDE":
                    slots.append(slot)
        slot = max(slots, key=lambda s: struct.unpack_from("<Q", s, 24)[0])
        self.size, state, flags = struct.unpack_from("<QII", slot, 48)
        self.open, self.primary = bool(flags & 1), bool(flags & 4)
        self.opening, self.waited = bool(flags & 16), bool(flags & 32)
        self.position = struct.unpack_from("<Q", slot, 88)[0]
        self.state = self.STATES[state]
        if self.open and self.state == "up-to-date":
            self.state = "unknown"
        self.generation, *self.history = [slot[224 + 16 * i:240 + 16 * i].hex() for i in range(16)]
        self.written = int(self.generation, 16) != 0

    def __str__(self):
        return (f"{self.state} {self.generation[:8]} of {[g[:8] for g in self.history if int(g, 16)][:3]}"
                f"{' open' if self.open else ''}{' primary' if self.primary else ''}{' waited' if self.waited else ''}")


def read(path):
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    {"program": program, "followed": followed}[sys.argv[1]](*sys.argv[2:])
