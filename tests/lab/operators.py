#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of what operators do, with faults in between, on running targets.

usage: operators.py SEED [RUNS [STEPS]] [--only N,N...] [--keep] [--power]

From a seed: three targets on loopback, a program that writes numbered updates with a policy of its own, and steps:
commands of replctl with and without --force, some cut off, some at once, next steps typed as they are printed, programs
and targets killed, stopped and started, the program's file lost. --only plays these steps of the seed alone; --keep
leaves the directory and prints each command; OPERATORS_TRACE names a file for what a run has done. With --power the
targets are those of docs/MEDIA-MODEL.md, and are cut off instead of killed; all are before each look. What holds:
  - a copy that is not labelled inconsistent is a beginning of what some program drained (I2)
  - a copy that is up to date or unknown holds what was acknowledged in each generation that it names (I3)
  - whom newest names has all that was acknowledged and that any of the others has
  - no copy loses what was acknowledged but by a person's word (I9)
  - verify tells whether the bytes differ (I6)
  - a command ends in time, by a status that replctl(1) has; a call returns by its deadline (I5)
  - who does what is printed has all replicas up to date and equal in the end, and no process or file is left
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

from operators_history import ACKED, BUILD, SIZE, Era, History, Record, read
from operators_parts import OP_TIMEOUT, Broken, Target, Writer, wait_for

REPLCTL = os.environ.get("REPLCTL", BUILD + "/replctl")
TARGETS = 3
COMMAND_S = 60


# ---- what operators do ----

class Run:
    def __init__(self, seed, only, keep, power):
        self.power = power
        self.seed, self.only, self.keep, self.random = seed, only, keep, random.Random(seed)
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        # What lies on tmpfs promises nothing beyond the machine's life.
        self.tmp = tempfile.mkdtemp(prefix="repl-test.", dir="/var/tmp" if power else os.environ.get("TMPDIR", shm))
        os.chmod(self.tmp, 0o755)
        self.lines, self.writers, self.history, self.acked = [], {}, History(), {}
        self.last, self.saved, self.targets, self.forced = {}, 0, [], False
        self.commands, self.begin, self.count, self.lock = 0, time.monotonic(), 0, threading.Lock()

    def say(self, text):
        line = f"{time.monotonic() - self.begin:6.2f} {text}"
        with self.lock:
            self.lines.append(line)
        if self.keep:
            print(line, flush=True)

    def path(self, site):
        return f"{self.tmp}/here/p" if site == "here" else self.targets[int(site[1])].path

    def set_up(self):
        for name in ("here", "journals"):
            os.mkdir(f"{self.tmp}/{name}")
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.tmp + "/key"], check=True)
        os.chmod(self.tmp + "/key", 0o644)
        self.targets = [Target(self, i) for i in range(TARGETS)]
        with open(self.tmp + "/known_hosts", "w", encoding="ascii") as known:
            for t in self.targets:
                t.start()
                done = subprocess.run(["ssh-keygen", "-y", "-f", t.dir + "/host_key"], capture_output=True, text=True)
                if done.returncode:
                    raise Broken(f"the host key of {t.site}: {done.stderr}{read(t.dir + '/log').decode()}")
                key = done.stdout
                known.write(f"[127.0.0.1]:{t.port} {' '.join(key.split()[:2])}\n")
        with open(self.tmp + "/repl.conf", "w", encoding="ascii") as file:
            file.write(f"[repl]\nidentity = {self.tmp}/key\nknown-hosts = {self.tmp}/known_hosts\n"
                       f"connect-timeout = 3000\nop-timeout = {OP_TIMEOUT}\n")
        with open(self.path("here"), "wb") as file:
            file.write(bytes(SIZE))

    # -- commands --

    def ctl(self, *words, kill=None):
        """Status, output and errors of a command."""
        self.commands += 1
        begin = time.monotonic()
        process = subprocess.Popen([REPLCTL, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "REPL_CONFIG": self.tmp + "/repl.conf", "HOME": self.tmp})
        if kill:
            try:
                process.wait(kill[0])
            except subprocess.TimeoutExpired:
                process.send_signal(kill[1])
        try:
            out, err = process.communicate(timeout=COMMAND_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise Broken(f"replctl {' '.join(words)} hangs") from None
        code = process.returncode
        took = time.monotonic() - begin
        self.say(f"replctl {' '.join(words)}{' KILLED' if kill else ''} = {code} in {took:.1f} s: "
                 + " | ".join(line for line in err.splitlines() if "%" not in line)[:700])
        if code not in range(11) and not (kill and code in (-kill[1], 128 + kill[1])):
            raise Broken(f"replctl {' '.join(words)} ended by {code}: {out}{err}")
        if code == 2 and "different pools" not in err or re.search(r"[Ii]nternal|Sanitizer|assert|\(null\)|: Success|%[lsdz]", out + err):
            raise Broken(f"replctl {' '.join(words)} tells {code}: {out}{err}")
        if code and not kill and not err.strip() and words[0] not in ("verify", "status", "newest"):
            raise Broken(f"replctl {' '.join(words)} ended by {code} and says nothing")
        return code, out, err

    def by_word(self, words):
        """What a command may take from a copy by somebody's word is not looked for there."""
        if words[0] in ("remove", "sync", "resolve", "restore", "create") and "--dry-run" not in words:
            for t in self.targets:
                if t.name in words and words[0] != "restore" and (
                        words[0] == "remove" or "--force" in words or "replica" in words):
                    self.last.pop(t.site, None)
            if words[0] in ("restore", "resolve") and "--force" in words and self.path("here") in words:
                self.last.pop("here", None)
        if words[0] in ("promote", "restore", "resolve") and "--force" in words:
            for t in self.targets:
                try:
                    self.forced |= t.name in words and Record(t.path).state == "inconsistent"
                except (OSError, ValueError):
                    pass

    def command(self, words, kill=None):
        """One of an operator's, which is held to what it promises of data."""
        self.by_word(words)
        before, seen = self.promised(words), self.seen()
        code, out, err = self.ctl(*words, kill=kill)
        self.by_word(words)
        if seen is not None and not kill and wait_for(5, lambda: not any(t.sessions() for t in self.targets)):
            self.check_done(words, code, seen)
        if before and code == 0:
            position, site = before
            now, _ = self.history.find(read(self.path(site)))
            if now and not all(self.history.within(p, now) for p in position):
                raise Broken(f"replctl {' '.join(words)} took {position} from {site}, which has {now} now")
        return code, out, err

    def seen(self):
        """The bytes of all copies, and their generations; None: somebody may be at them."""
        found = {}
        if self.writers or any(t.sessions() for t in self.targets):
            return None
        for site in ("here", *(t.site for t in self.targets)):
            try:
                found[site] = hash(read(self.path(site))), Record(self.path(site)).generation
            except (OSError, ValueError):
                pass
        return found

    def check_done(self, words, code, before):
        """What a command says that it has done, and that it has done nothing else."""
        named = [site for site in ("here", *(t.site for t in self.targets))
                 if self.path(site) in words or site != "here" and self.targets[int(site[1])].name in words]
        now, dry = self.seen(), "--dry-run" in words
        changed = [s for s in {*now, *before} if now.get(s) != before.get(s)]
        allowed = {"sync": named, "restore": ["here"], "resolve": named, "remove": named, "create": named,
                   "promote": named, "demote": named}.get(words[0], []) if not dry else []
        # Whoever opens a copy brings in what its last writer has left.
        if any(s not in allowed and s not in named for s in changed) or code == 0 and dry and changed:
            raise Broken(f"replctl {' '.join(words)} = {code} has changed {changed}")
        if code or dry or words[0] not in ("sync", "restore", "resolve", "promote", "demote", "remove"):
            return
        if words[0] == "remove":
            wrong = set(named) & set(now)
        elif words[0] in ("promote", "demote"):
            wrong = Record(self.path(named[0])).primary != (words[0] == "promote")
        else:
            wrong = len(named) == 2 and now[named[0]] != now[named[1]] and (
                now[named[0]][0] != now[named[1]][0] or words[0] == "sync")
        if wrong:
            raise Broken(f"replctl {' '.join(words)} has not done it: {named}, {now}")

    def promised(self, words):
        """What a copy has, by its record, that the command must not take from it; and which copy."""
        site = None
        if words[0] == "restore" and words[-1] == self.path("here"):
            site = "here"
        elif words[0] == "sync" and "--force" not in words and "--dry-run" not in words:
            site = next(t.site for t in self.targets if t.name in words)
        try:
            if not site or self.writers:
                return None
            record = Record(self.path(site))
            position, _ = self.history.find(read(self.path(site)))
            if record.written and record.state != "inconsistent" and not record.opening and position:
                return self.owed(record, position), site
        except (OSError, ValueError, struct.error):
            pass
        return None

    def typed(self, text):
        """The commands that a text tells to type."""
        found = []
        for part in re.findall(r"replctl [^;]*", text.replace("replctl", ";replctl")):
            words = []
            for word in part.split()[1:]:
                end = word[-1] in ",:.)" or word[0] == "("
                word = word.rstrip(",:.)")
                if not words and re.fullmatch("[a-z]+", word) or re.match(r"--|/|\./", word) or "@" in word or \
                        word in ("local", "replica", "up-to-date", "FILE", "TARGET/POOL", "OTHER-FILE") or \
                        words and words[-1] in ("--timeout", "--size") and word.isdigit():
                    words.append(word)
                else:
                    break
                if end:
                    break
            other = f"{self.tmp}/here/other{self.count}"
            names = {"FILE": self.path("here"), "OTHER-FILE": other,
                     "TARGET/POOL": self.random.choice(self.targets).name}
            words = [names.get(w, w) for w in words]
            if len(words) > 1:
                found.append(words)
        return found

    def follow(self, err):
        """Whoever types what is printed behind a refusal, and nothing else, must not go in a circle."""
        seen = []
        while len(seen) < 8:
            steps = [w for line in err.splitlines() if line.startswith("next: replctl") for w in self.typed(line)]
            if not steps or "--watch" in steps[0]:
                return
            if steps[0] in seen:
                raise Broken(f"what is printed goes in a circle: {seen}")
            seen.append(steps[0])
            code, _, err = self.command(steps[0])
            if code in (0, 7, 9):
                return

    # -- what holds while nobody writes --

    def rest(self, number):
        """All programs are ended, all targets are there, and no session is."""
        for writer in list(self.writers.values()):
            writer.end(number)
        for t in self.targets:
            t.start()
            if not wait_for(30, lambda t=t: not t.sessions()):
                raise Broken(f"sessions stay at {t.site}: {t.sessions()}")
            if self.power:
                t.power_fails()
                t.start()

    def look(self, site):
        """The record and the position of a copy that is usable; None: it is none."""
        path = self.path(site)
        try:
            record, image = Record(path), read(path)
        except (OSError, ValueError):
            return None
        position, torn = self.history.find(image) if len(image) >= SIZE else (None, None)
        self.say(f"{site}: {record} is at {position} {torn or ''}")
        if record.state == "inconsistent" or not record.written or record.opening:
            return None
        # A file that was made anew beside the record of one that was lost.
        if site == "here" and not any(image):
            return None
        if position is None and self.forced:
            self.history.eras.append(Era(len(self.history.eras), image[:SIZE], None, [], None))
            return None
        if position is None:
            raise Broken(f"{site} is {record}, and of no history")
        return record, position

    def check(self, number=signal.SIGKILL):
        self.rest(number)
        there = [t for t in self.targets if os.path.exists(t.path)]
        if not there:
            return
        code, out, _ = self.ctl("newest", "--json", *(t.name for t in there))
        copies = {}
        for site in ("here", *(t.site for t in there)):
            if os.path.exists(self.path(site)):
                copies[site] = self.look(site)
        for site, copy in copies.items():
            if copy:
                self.check_chain(site, *copy)
                self.check_kept(site, *copy)
        if code == 0:
            self.check_newest(json.loads(out)["newest"], copies)
        t = self.random.choice(there)
        if os.path.exists(self.path("here")):
            same = read(self.path("here")) == read(t.path)
            code, out, err = self.ctl("verify", self.path("here"), t.name)
            if code not in (0, 1, 4) or code == (1 if same else 0):
                raise Broken(f"verify ends by {code}, the bytes are {'the same' if same else 'not'}: {out}{err}")

    def check_chain(self, site, record, position):
        if record.state not in ("up-to-date", "unknown"):
            return
        chain = (record.generation, *record.history)
        for at, generation in enumerate(chain):
            # One that is promoted behind a writer that has not closed has a part of the one before.
            if at == 0 and (record.position or not record.waited and site != "here") or \
                    at == 1 and record.position and record.primary:
                continue
            for era, acked in self.acked.get(generation, {}).items():
                if not self.history.within((era, acked), position):
                    raise Broken(f"{site} is {record} at {position}, and lacks {(era, acked)} of {generation[:8]}")

    def owed(self, record, position):
        """What a copy has that was acknowledged in a generation that it names: to be there as long as nobody gives it up."""
        found = []
        for generation in (record.generation, *record.history):
            for era, acked in self.acked.get(generation, {}).items():
                if era == position[0]:
                    found.append((era, min(acked, position[1])))
                elif self.history.within((era, acked), position):
                    found.append((era, acked))
        return found

    def check_kept(self, site, record, position):
        for owed in self.last.get(site, []):
            if not self.history.within(owed, position):
                raise Broken(f"{site} had {owed}, and is at {position} by nobody's word")
        self.last[site] = self.owed(record, position)

    def check_newest(self, name, copies):
        best = next(t.site for t in self.targets if t.name == name)
        if not copies.get(best):
            raise Broken(f"newest names {best}, which is not usable")
        for site, copy in copies.items():
            for owed in self.owed(*copy) if copy and site != "here" else []:
                if not self.history.within(owed, copies[best][1]):
                    raise Broken(f"newest names {best}, at {copies[best][1]}; {site} has {owed}")

    # -- steps --

    def settings(self, site, targets):
        r, chosen = self.random, [t for t in targets if t.site != site]
        r.shuffle(chosen)
        chosen = chosen[:r.choice((2, 3, 3))]
        far = len(chosen) > 1 and r.random() < 0.3
        return [*(f"{'async-target' if far and t is chosen[-1] else 'target'}={t.name}" for t in chosen),
                f"ack={r.choice(('all', 'all', 'quorum', 'any'))}",
                f"on-loss={r.choice(('degrade', 'degrade', 'degrade', 'fail', 'block'))}",
                f"lanes={r.choice((1, 2, 4))}", f"resync-rate={r.choice(('auto', 'auto', '64K', '1M'))}",
                f"after-crash={r.choice(('compare', 'dirty-map'))}", f"on-lag={r.choice(('slow', 'degrade'))}",
                f"method={r.choice(('auto', 'auto', 'auto', 'message', 'deposit'))}"]

    def login(self):
        return [f"identity={self.tmp}/key", f"known-hosts={self.tmp}/known_hosts", f"op-timeout={OP_TIMEOUT}",
                "connect-timeout=3000", "close-timeout=3000", "block-timeout=3000", "reconnect-max=1000"]

    def restore_lost(self):
        """The file is gone: RECOVERY.md."""
        there = [t.name for t in self.targets if os.path.exists(t.path)]
        code, out, err = self.ctl("newest", *there) if there else (4, "", "")
        steps = [w for line in out.splitlines() if line.startswith("next ") for w in self.typed(line)]
        if code == 0 and steps:
            code, _, err = self.command(steps[0])
            if code == 4 and "--force" in err and self.random.random() < 0.6:
                self.command(["restore", "--force", *steps[0][-2:]])
        return err

    def do_start(self):
        sites = [t.site for t in self.targets if os.path.exists(t.path + ".repl") and Record(t.path).primary]
        site = self.random.choice(sites) if sites and self.random.random() < 0.5 else "here"
        if site in self.writers and self.writers[site].process.poll() is None:
            return
        if site in self.writers:
            self.writers[site].end(signal.SIGKILL)
        if not os.path.exists(self.path(site)) and self.random.random() < 0.9:
            self.restore_lost()
        if not os.path.exists(self.path(site)):
            if self.random.random() < 0.7 or site != "here":
                return
            with open(self.path(site), "wb") as file:
                file.write(bytes(SIZE))
        settings, followed = self.settings(site, self.targets), site == "here" and self.random.random() < 0.35
        # One that it has begun to write is copied over the replicas: RECOVERY.md.
        if os.path.exists(self.path(site) + ".repl") and not any(read(self.path(site))):
            followed = False
        if followed:
            settings = [s.replace("async-target", "target") for s in settings if not s.startswith("after-crash")]
        writer = Writer(self, site, settings + self.login(), followed)
        self.say(f"program {writer.era.number} at {site}{' by replctl run' * followed}: {settings} from "
                 f"{writer.era.parent}")
        if self.random.random() < 0.85:
            wait_for(self.random.choice((1, 8, 8)), writer.opened)
        if writer.process.poll() is not None:
            _, said = writer.end(signal.SIGKILL)
            if site == "here" and self.random.random() < 0.7:
                self.do_as_refused(said)

    def writer(self):
        return self.random.choice(list(self.writers.values())) if self.writers else None

    def do_signal_program(self):
        writer, number = self.writer(), self.random.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT))
        if writer:
            self.say(f"{number.name} to the program at {writer.site}")
            if number in (signal.SIGKILL, signal.SIGTERM):
                writer.end(number)
            else:
                writer.signal(number)

    def do_signal_target(self):
        t, number = self.random.choice(self.targets), self.random.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP))
        self.say(f"{number.name} to {t.site}")
        if number == signal.SIGSTOP:
            t.signal(number)
        elif number == signal.SIGKILL and self.power:
            t.power_fails()
        else:
            t.end(number, self.random.random() < 0.3)

    def do_start_targets(self):
        for t in self.targets:
            t.start()

    def do_lose(self):
        if "here" in self.writers:
            self.writers["here"].end(signal.SIGKILL)
        for suffix in ("", ".repl") if self.random.random() < 0.4 else ("",):
            if os.path.exists(self.path("here") + suffix):
                os.rename(self.path("here") + suffix, f"{self.tmp}/lost{self.saved}{suffix}")
        self.saved += 1
        self.last.pop("here", None)
        self.say("the file is lost")

    def do_check(self):
        self.check(self.random.choice((signal.SIGKILL, signal.SIGTERM)))

    def do_sleep(self):
        time.sleep(self.random.choice((0.1, 0.5, 2)))

    def some_command(self):
        r, file, t = self.random, self.path("here"), self.random.choice(self.targets)
        force = ["--force"] * (r.random() < 0.35) or ["--dry-run"] * (r.random() < 0.1)
        yes = ["--force"] * (r.random() < 0.4)
        other = f"{self.tmp}/here/other{r.randrange(2)}"
        while_it_runs = (
            ["pause", *yes, file, t.name], ["pause", *yes, file], ["resume", file], ["resume", file, t.name],
            ["resume", file], ["wait", "--timeout", "3", file], ["status", file], ["why", file], ["metrics", file],
            ["promote", *yes, t.name], ["remove", *yes, t.name], ["status", t.name[:-2]])
        between = (
            ["sync", *force, file, t.name], ["sync", *force, file, t.name], ["restore", *force, t.name, file],
            ["restore", *force, t.name, other], ["verify", file, t.name], ["promote", *yes, t.name], ["demote", t.name],
            ["resolve", *force, "--discard", r.choice(("local", "replica")), file, t.name],
            ["newest", *(x.name for x in self.targets)], ["why", t.name], ["info", t.name], ["list", t.name[:-2]],
            ["remove", *yes, t.name], ["create", t.name, "--size", str(SIZE)], ["probe", t.name])
        return r.choice(while_it_runs if ("here" in self.writers) == (r.random() < 0.75) else between)

    def do_command(self):
        words, r = self.some_command(), self.random
        kill = (r.random() * 0.4, r.choice((signal.SIGKILL, signal.SIGINT))) if r.random() < 0.12 else None
        _, _, err = self.command(words, kill)
        if err and not kill and r.random() < 0.5:
            self.follow(err)

    def do_commands(self):
        """Some at once, and no look at what each has promised."""
        broken, threads = [], []

        def one(words):
            try:
                self.by_word(words)
                self.ctl(*words)
                self.by_word(words)
            except Broken as e:
                broken.append(e)
        for _ in range(self.random.choice((2, 3))):
            threads.append(threading.Thread(target=one, args=(self.some_command(),)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        if broken:
            raise broken[0]

    # -- the end --

    def do_as_told(self, text):
        """All that a next step tells, by somebody who keeps what the file has; whether anything was told."""
        steps = self.typed(text)
        told = False
        for words in steps:
            if words[0] in ("events", "run", "newest", "bench") or words[0] == "restore" and self.path("here") not in words:
                continue
            told = True
            words = ["replica" if w == "local" else w for w in words]
            if words[0] in ("sync", "resolve", "restore") and "here" in self.writers:
                self.writers["here"].end(signal.SIGTERM)
            if words[0] in ("remove", "resolve") and not {"--force", "--dry-run"} & set(words):
                words.append("--force")
            _, _, err = self.command(words)
            # That has another name, or goes: no step decides between two pools.
            if "it may be of another pool" in err:
                self.command(["remove", "--force", words[-1]])
                return True
            if "--dry-run" in words:
                self.command(["--force" if w == "--dry-run" else w for w in words])
        return told

    def do_as_refused(self, said):
        return self.do_as_told(said.split("To take the replica's data:")[-1].split("to have it anew:")[-1])

    def whole(self):
        """A program at the file, all targets, and what is printed, until all is well."""
        settings = [f"target={t.name}" for t in self.targets] + self.login()
        for _ in range(12):
            if not os.path.exists(self.path("here")):
                self.file_anew()
            if "here" not in self.writers:
                writer = Writer(self, "here", settings)
                if not wait_for(60, writer.opened):
                    raise Broken("the program does not open its pool")
                if writer.process.poll() is not None:
                    _, said = writer.end(signal.SIGKILL)
                    if not self.do_as_refused(said):
                        raise Broken(f"the program is refused, and is told nothing: {said}")
                    continue
            code, out, _ = self.ctl("wait", self.path("here"), "--timeout", "25")
            if code == 0:
                return
            code, out, _ = self.ctl("status", "--json", self.path("here"))
            if code not in (0, 5):
                continue
            for o in json.loads(out)["replicas"]:
                self.say(f"{o['replica']}: {o['reason']} {o.get('message')}: {o.get('next')}")
                if o["reason"] != "none":
                    self.do_as_told(o.get("next", ""))
        raise Broken("what is printed does not make all well")

    def file_anew(self):
        err = self.restore_lost()
        if os.path.exists(self.path("here")):
            return
        for t in self.targets:
            if os.path.exists(t.path) and self.command(["restore", "--force", t.name, self.path("here")])[0] == 0:
                return
        usable = [t for t in self.targets if os.path.exists(t.path) and self.look(t.site)]
        if usable and not any(Record(t.path).primary for t in usable):
            raise Broken(f"nothing that is printed brings the file back: {err}")
        for suffix in (".repl",):
            if os.path.exists(self.path("here") + suffix):
                os.rename(self.path("here") + suffix, f"{self.tmp}/lost-record{self.saved}")
        if usable:
            self.command(["demote", usable[0].name])
            self.command(["restore", "--force", usable[0].name, self.path("here")])
        if not os.path.exists(self.path("here")):
            with open(self.path("here"), "wb") as file:
                file.write(bytes(SIZE))

    def end(self):
        self.check()
        self.whole()
        for writer in list(self.writers.values()):
            code, said = writer.end(signal.SIGTERM)
            if code:
                raise Broken(f"the program does not close in order: {said}")
        self.check()
        for t in self.targets:
            copy = self.look(t.site)
            if not copy or copy[0].state != "up-to-date" or read(t.path) != read(self.path("here")):
                raise Broken(f"{t.site} is not equal in the end")
            t.end(signal.SIGTERM)
            if not wait_for(10, lambda t=t: not t.sessions()):
                raise Broken(f"processes of {t.site} stay")
            left = [n for n in os.listdir(t.dir + "/pools")
                    if n not in ("p", "p.repl", "p.repl-sock", ".repld") and not (self.power and n.endswith(".media"))]
            if left:
                raise Broken(f"left at {t.site}: {left}")
        left = [n for n in os.listdir(f"{self.tmp}/here") if not re.fullmatch(r"(p|other\d+)(\.repl|\.restoring)?", n)]
        if left or os.path.exists(self.path("here") + ".restoring"):
            raise Broken(f"left: {os.listdir(self.tmp + '/here')}")

    def play(self, steps):
        self.set_up()
        kinds = [self.do_start] * 10 + [self.do_signal_program] * 4 + [self.do_signal_target] * 5 + \
            [self.do_start_targets] * 6 + [self.do_lose] + [self.do_check] * 3 + [self.do_sleep] * 3 + \
            [self.do_command] * 20 + [self.do_commands] * 4
        for self.count in range(steps):
            if self.only and self.count not in self.only:
                continue
            self.random.seed(f"{self.seed}:{self.count}")
            do = self.do_start if self.count == 0 else self.random.choice(kinds)
            self.say(f"-- {self.count} {do.__name__}")
            do()
            for writer in self.writers.values():
                if writer.stopped and time.monotonic() > writer.stopped + 6:
                    writer.signal(signal.SIGCONT)
        self.say("-- end")
        self.end()

    def clean_up(self):
        for writer in list(self.writers.values()):
            writer.signal(signal.SIGCONT)
            writer.signal(signal.SIGKILL)
            writer.process.wait()
            writer.watcher.join()
        for t in self.targets:
            t.end(signal.SIGKILL)
            for pid in t.sessions():
                os.kill(pid, signal.SIGKILL)
            wait_for(5, lambda t=t: not t.sessions())
        if not self.keep:
            shutil.rmtree(self.tmp, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("runs", type=int, nargs="?", default=1)
    parser.add_argument("steps", type=int, nargs="?", default=40)
    parser.add_argument("--only")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--power", action="store_true")
    args = parser.parse_args()
    # Nothing is left behind by who is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    only = [int(n) for n in args.only.split(",")] if args.only else None
    for seed in range(args.seed, args.seed + args.runs):
        run = Run(seed, only, args.keep, args.power)
        try:
            run.play(args.steps)
            acked = sum(era.words()[ACKED] for era in run.history.eras if era.journal)
            print(f"operators, seed {seed}{', power' * args.power}: held, {run.commands} commands, {len(run.history.eras) - 1} programs, "
                  f"{acked} updates acknowledged", flush=True)
        except Broken as e:
            print(*run.lines, f"LOST: operators, seed {seed}, in {run.tmp}: {e}", sep="\n", flush=True)
            sys.exit(1)
        finally:
            if "OPERATORS_TRACE" in os.environ:
                with open(os.environ["OPERATORS_TRACE"], "a", encoding="utf-8") as trace:
                    print(*run.lines, sep="\n", file=trace)
            run.clean_up()


if __name__ == "__main__":
    main()
