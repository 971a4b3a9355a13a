"""Computes for ever in calls of many kinds. On SIGUSR1, prints the stack as CPython itself sees it."""
import faulthandler
import functools
import signal
import sys
import threading

faulthandler.register(signal.SIGUSR1, file=sys.stdout, all_threads=False)


def recursion(depth, value):
    if depth == 0:
        return innermost(value)
    return recursion(depth - 1, value) + 1


def innermost(value):
    total = 0
    for i in range(7):
        total += (
            value * i
            + total % 3
        )
        if total % 2:
            total ^= i


        else:
            total -= 1
    return total


def generator(count):
    for i in range(count):
        try:
            yield innermost(i)
        finally:
            i += 1


def delegating(count):
    yield from generator(count)


class Case:
    def __init__(self, value):
        self.value = value

    @property
    def doubled(self):
        return [innermost(self.value + i) for i in range(3)]

    def __lt__(self, other):
        return recursion(2, self.value) < other.value


def context():
    with threading.Lock():
        return sum(delegating(5))


def compiled(value):
    names = {"innermost": innermost, "value": value}
    source = "\n" * (value % 300) + "def größe():\n    return innermost(value)\n\n" + "\n" * 400 + "x = größe()\n"
    exec(compile(source, "datei_ü_函数_😀.py", "exec"), names)
    return names["x"]


def rounds():
    value = 0
    while True:
        value += 1
        recursion(value % 40, value)
        context()
        Case(value).doubled
        sorted([Case(i) for i in range(4)])
        functools.reduce(lambda a, b: a + innermost(b), range(4))
        list(map(lambda a: recursion(1, a), range(3)))
        compiled(value)


if sys.argv[1:] == ["thread"]:
    worker = threading.Thread(target=rounds, daemon=True)
    worker.start()
    print("ready", flush=True)
    threading.Event().wait()
if sys.argv[1:] == ["deep"]:
    sys.setrecursionlimit(3000)
    print("ready", flush=True)
    while True:
        recursion(900, 1)
print("ready", flush=True)
rounds()
