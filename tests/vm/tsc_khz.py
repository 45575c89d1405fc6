#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Print the rate of this machine's time stamp counter in kHz.

The counter of an emulated processor is this machine's own. A kernel that boots on a busy machine
measures it wrong, several times too slow, and then its clock runs as many times too fast.
"""
import ctypes
import mmap
import time

# rdtsc; shl rdx, 32; or rax, rdx; ret
CODE = b"\x0f\x31\x48\xc1\xe2\x20\x48\x09\xd0\xc3"
SECONDS = 0.1


def main():
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(CODE)
    counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))

    def look():
        """Both clocks at one moment: of many looks the one with the least between them."""
        looks = []
        for _ in range(50):
            before = time.perf_counter_ns()
            count = counter()
            after = time.perf_counter_ns()
            looks.append((after - before, count, (before + after) // 2))
        return min(looks)[1:]

    first_count, first_ns = look()
    time.sleep(SECONDS)
    count, ns = look()
    print(round((count - first_count) * 1_000_000 / (ns - first_ns)))


main()
