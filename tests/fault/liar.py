# SPDX-License-Identifier: BSD-3-Clause
"""liar - a session of repld's whose answers are changed on their way: a hostile target.

Environment: REPLD and REPLD_CONF, the session that is asked; ASKED, a file that gets all requests,
one a line; LIES, a file with a JSON array of lies. The first one that fits an answer holds:
    method   of the request, or "*"
    nth      which answer to that method, from 1; without it all
    set      path of a member, [] is the line: it becomes "value"
    members  object of more that the result gets
    count    name of a member: the result has it alone, how many answers to the method there were
    refuse   name of a status: it becomes an error of that
    line     what is said in place of the answer, Latin-1
    before, after   what is said beside it
    do       "drop", "stall" (no more answers), "close", "half" (of the line, then "stall"),
             "cut" (closed before the request has come)
"""
import json
import os
import subprocess
import sys
import threading

lies = json.load(open(os.environ["LIES"]))
session = subprocess.Popen(
    [os.environ["REPLD"], "session", "--config", os.environ["REPLD_CONF"]],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)
methods = {}
asked = open(os.environ["ASKED"], "ab", buffering=0) if "ASKED" in os.environ else None


def requests():
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if asked:
            asked.write(line)
        methods[request["id"]] = request["method"]
        if {"method": request["method"], "do": "cut"} in lies:
            os._exit(0)
        session.stdin.write(line)
        session.stdin.flush()
    session.stdin.close()


def say(line):
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


def changed(answer, path, value):
    if not path:
        return value
    answer[path[0]] = changed(answer[path[0]] if path[1:] else None, path[1:], value)
    return answer


def tell(line, lie, nth):
    if {"set", "members", "refuse", "count"} & set(lie):
        answer = json.loads(line)
        if "refuse" in lie:
            del answer["result"]
            data = {"status": lie["refuse"]}
            answer["error"] = {"code": -32000, "message": "refused", "data": data}
        if "count" in lie:
            answer.pop("error", None)
            answer["result"] = {lie["count"]: nth}
        if "set" in lie:
            answer = changed(answer, lie["set"], lie["value"])
        if "members" in lie:
            answer["result"].update(lie["members"])
        line = json.dumps(answer, ensure_ascii=False).encode() + b"\n"
    line = lie["line"].encode("latin-1") if "line" in lie else line
    do = lie.get("do")
    if do == "close":
        os._exit(0)
    if do == "half":
        line = line[: len(line) // 2]
    say(lie.get("before", "").encode("latin-1"))
    if do not in ("drop", "stall"):
        say(line)
    say(lie.get("after", "").encode("latin-1"))
    if do in ("stall", "half"):
        listener.join()
        os._exit(0)


listener = threading.Thread(target=requests, daemon=True)
listener.start()
told = {}
for line in session.stdout:
    method = methods.get(json.loads(line)["id"])
    nth = told[method] = told.get(method, 0) + 1
    fitting = [
        lie
        for lie in lies
        if lie["method"] in ("*", method) and lie.get("nth", nth) == nth
    ]
    try:
        tell(line, fitting[0] if fitting else {}, nth)
    except BrokenPipeError:
        break
os._exit(0)
