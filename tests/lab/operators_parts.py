# SPDX-License-Identifier: BSD-3-Clause
"""Targets, and programs that write, each with its processes: for operators.py."""
import os
import pwd
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import operators_history
from operators_history import ACKED, BUILD, JOURNAL, OPENED, WORST, Era, Record, read

REPLD = os.environ.get("REPLD", BUILD + "/repld")
MEDIA = BUILD + "/tests/sim/repld-media"
OP_TIMEOUT = 2000
SLACK = 2500
# Of a user who can't read root's.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
USER = "nobody" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name


def children(pid):
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            found += [int(p) for p in read(f"/proc/{pid}/task/{task}/children").split()]
    except OSError:
        pass
    return found + [p for child in found for p in children(child)]


def wait_for(seconds, condition):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.03)
    return True


def free_port():
    """One that the kernel gives to no connection while a target is away."""
    while True:
        port = random.SystemRandom().randrange(10000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Broken(Exception):
    pass


class Target:
    def __init__(self, run, number):
        self.run, self.dir, self.process, self.alone = run, f"{run.tmp}/t{number}", None, []
        self.port = free_port()
        self.site, self.path = f"t{number}", f"{self.dir}/pools/p"
        self.name = f"{USER}@127.0.0.1:{self.port}/p"
        self.env = self.media(run.random) if run.power else None
        os.makedirs(self.dir + "/pools")
        shutil.copy(run.tmp + "/key.pub", self.dir + "/authorized_keys")
        with open(self.dir + "/repld.conf", "w", encoding="ascii") as file:
            file.write(f"[repld]\npool-dir = {self.dir}/pools\nlisten = 127.0.0.1:{self.port}\n"
                       f"host-key = {self.dir}/host_key\nauthorized-keys = {self.dir}/authorized_keys\n"
                       f"heartbeat-timeout = 4000\n"
                       f"lanes-max = {run.random.choice((2, 16))}\njournal-max = {run.random.choice(('1M', 'auto'))}\n"
                       + (f"user = {USER}\n" if os.getuid() == 0 else "")
                       + ("persistence-domain = dmp\nddio = on\nrqwrb = dram\n"
                          if self.env and self.env["REPL_MEDIA_GRANULARITY"] != "page" else ""))
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", USER, self.dir], check=True)

    @staticmethod
    def media(chance):
        """The machine that tests/sim/pmem_media.c plays."""
        env = {**os.environ, "REPL_MEDIA_GRANULARITY": chance.choice(("page", "page", "cache_line"))}
        if chance.random() < 0.5:
            env["REPL_MEDIA_EVICT"] = str(chance.randrange(1, 1000))
        return env

    def pids(self):
        return [self.process.pid, *children(self.process.pid)] if self.process else []

    def start(self):
        self.signal(signal.SIGCONT)
        if self.process:
            return
        with open(self.dir + "/log", "ab") as log:
            before = log.tell()
            self.process = subprocess.Popen([MEDIA if self.env else REPLD, "serve", "--config", self.dir + "/repld.conf"],
                                            stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env)
        if not wait_for(10, lambda: b"listening on" in read(self.dir + "/log")[before:]):
            raise Broken(f"{self.site} does not start: {read(self.dir + '/log')[-500:]}")

    def signal(self, number):
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def end(self, number, alone=False):
        """SIGKILL to all or to the server alone, whose sessions go on, or SIGTERM to the server."""
        if not self.process:
            return
        pids = [p for p in self.pids() if p != self.process.pid]
        self.signal(signal.SIGCONT)
        if number == signal.SIGKILL and not alone:
            self.signal(number)
        else:
            self.process.send_signal(number)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            raise Broken(f"{self.site} does not end") from None
        if number != signal.SIGKILL and self.process.returncode != 0:
            raise Broken(f"{self.site} ended with {self.process.returncode}")
        self.process = None
        self.alone += pids

    def power_fails(self):
        """All its processes end, and of its files what the media have is left."""
        self.end(signal.SIGKILL)
        for pid in self.alone:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if not wait_for(10, lambda: not self.sessions()):
            raise Broken(f"processes of {self.site} stay: {self.alone}")
        for path in (self.path, self.path + ".repl"):
            if os.path.exists(path):
                done = subprocess.run([BUILD + "/tests/sim/media_cut", path], env=self.env, capture_output=True, text=True)
                if done.returncode:
                    raise Broken(f"the cut of {path}: {done.stderr}")

    def sessions(self):
        self.alone = [p for p in self.alone if os.path.exists(f"/proc/{p}/cwd")]
        return self.alone + (children(self.process.pid) if self.process else [])


class Writer:
    """A program at a site; its acknowledgements by generation are looked at while it runs."""

    def __init__(self, run, site, settings, followed=False):
        path = run.path(site)
        image = read(path)
        parent, torn = run.history.find(image)
        era = len(run.history.eras)
        journal = f"{run.tmp}/journals/{era}"
        with open(journal, "wb") as file:
            file.write(bytes(JOURNAL.size))
        os.chmod(journal, 0o666)
        self.run, self.site, self.stopped, self.stopped_s, self.settings = run, site, None, 0, settings
        self.found = Record(path).generation if os.path.exists(path + ".repl") else None
        self.era = Era(era, image, parent, torn or [], journal)
        if parent is None:
            run.say(f"era {era} begins with what is of no history")
        run.history.eras.append(self.era)
        as_user = {"user": USER} if os.getuid() == 0 and site != "here" else {}
        # What it stores is not the target's doing, and none of it is lost.
        for image in (".media", ".repl.media") if run.power and site != "here" else ():
            if os.path.exists(path + image):
                os.unlink(path + image)
        self.log, self.followed = f"{run.tmp}/journals/{era}.log", followed
        words = [PYTHON, operators_history.__file__, "followed" if followed else "program", path, journal, str(era),
                 str(run.random.choice((300, 1000, 5000))), ",".join(map(str, torn or [])), *settings]
        if followed:
            words = self.run_by(path, settings) + words
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                env={**os.environ, "HOME": run.tmp, "IPATH_NO_BACKTRACE": "1"}, **as_user)
        run.writers[site] = self
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    @staticmethod
    def run_by(path, settings):
        words = [operators_history.BUILD + "/replctl", "run"]
        for setting in settings:
            key, value = setting.split("=", 1)
            words += ["--replica", value] if key == "target" else ["--set", setting]
        return words + ["--pool", path, "--"]

    def sample(self):
        try:
            path = self.run.path(self.site)
            # No generation has what is made durable while no replica is open: each opening makes one.
            if self.followed and (os.path.exists(path + ".repl-missed") or Record(path).generation == self.found):
                return
            before, acked = Record(path).generation, self.era.words()[ACKED]
            if self.followed and os.path.exists(path + ".repl-missed"):
                return
            if acked and int(before, 16) and Record(path).generation == before:
                seen = self.run.acked.setdefault(before, {})
                seen[self.era.number] = max(seen.get(self.era.number, 0), acked)
        except (OSError, ValueError, KeyError, struct.error):
            pass

    def watch(self):
        while self.process.poll() is None:
            self.sample()
            time.sleep(0.01)

    def opened(self):
        return self.era.words()[OPENED] != 0 or self.process.poll() is not None

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
            if number == signal.SIGSTOP and not self.stopped:
                self.stopped = time.monotonic()
            if number == signal.SIGCONT and self.stopped:
                self.stopped_s += time.monotonic() - self.stopped
                self.stopped = None

    def end(self, number):
        self.signal(signal.SIGCONT)
        self.signal(number)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            raise Broken(f"the program at {self.site} does not end: {self.settings}") from None
        self.watcher.join()
        del self.run.writers[self.site]
        code, words, said = self.process.returncode, self.era.words(), read(self.log).decode(errors="replace")
        self.run.say(f"program {self.era.number} at {self.site} ended by {code}: {words} {said.strip()}")
        stops = self.followed and code == -signal.SIGABRT and "on-loss=degrade" not in self.settings
        if code not in (0, 4, -signal.SIGKILL) and not (code == -signal.SIGTERM and not words[OPENED]) and not stops:
            raise Broken(f"the program ended by {code}: {said}")
        limit = OP_TIMEOUT + SLACK + self.stopped_s * 1000 + (3000 if "on-loss=block" in self.settings else 0)
        if words[WORST] > limit * 1000:
            raise Broken(f"a call took {words[WORST] // 1000} ms, not {int(limit)}: {self.settings}")
        return code, said
