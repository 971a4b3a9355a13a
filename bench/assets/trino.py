"""Queries of Trino at the same time: `trino.py URL RUNS`. Prints a line of JSON for each run of the victim.

The victim joins tables of TPC-H, which Trino's connector makes up. In each run it is executed alone, beside a query that
computes, beside one whose client does not fetch its result, and beside both, in random order. The neighbours would run for hours;
they begin before the victim and are canceled after it.
"""

import json
import random
import sys
import time
import urllib.request

url, runs = sys.argv[1], int(sys.argv[2])
VICTIM = """SELECT l.orderkey, sum(l.extendedprice * (1 - l.discount)), o.orderdate FROM customer c JOIN orders o ON c.custkey = o.custkey
    JOIN lineitem l ON l.orderkey = o.orderkey WHERE c.mktsegment = 'BUILDING' GROUP BY 1, 3 ORDER BY 2 DESC LIMIT 10"""
COMPUTES = "SELECT linenumber, sum(length(to_hex(sha512(to_utf8(comment))))) FROM tpch.sf1000.lineitem GROUP BY 1"
IDLE = "SELECT * FROM tpch.sf1000.lineitem"


def ask(address, data=None, source="", method=None):
    headers = {"X-Trino-User": "bench", "X-Trino-Catalog": "tpch", "X-Trino-Schema": "sf0.3", "X-Trino-Source": source}
    request = urllib.request.Request(address, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else {}


class Query:
    def __init__(self, source, sql):
        self.answer = ask(f"{url}/v1/statement", sql.encode(), source)
        self.id = self.answer["id"]

    def fetch(self):
        """Fetches the next part of the result; false at the end."""
        if "nextUri" not in self.answer:
            return False
        self.answer = ask(self.answer["nextUri"])
        if "error" in self.answer:
            sys.exit(f"{self.id}: {self.answer['error']['message']}")
        return True

    def cancel(self):
        ask(f"{url}/v1/query/{self.id}", method="DELETE")


def begin(name):
    if name == "computes":
        query = Query(name, COMPUTES)
        # It runs by itself once the client has asked for the result.
        until = time.time() + 3
        while time.time() < until and query.fetch():
            pass
        return query
    query = Query(name, IDLE)
    while query.fetch() and "data" not in query.answer:
        pass
    # The query computes until its output buffers are full. The coordinator gets its last sums up to three seconds later.
    time.sleep(8)
    return query


def victim():
    begun = time.time()
    query = Query("victim", VICTIM)
    while query.fetch():
        pass
    return query.id, time.time() - begun


def wait_for_workers():
    """The coordinator knows its workers some seconds after it says that it has started."""
    until = time.time() + 60
    while True:
        query = Query("warm-up", "SELECT count(*) FROM nation")
        while "nextUri" in query.answer and "error" not in query.answer:
            query.answer = ask(query.answer["nextUri"])
        if "error" not in query.answer or time.time() > until:
            return
        time.sleep(1)


wait_for_workers()
for _ in range(3):
    victim()
for run in range(runs):
    subsets = [(), ("computes",), ("idle",), ("computes", "idle")]
    random.shuffle(subsets)
    for subset in subsets:
        beside = {name: begin(name) for name in subset}
        name, seconds = victim()
        line = {"run": run, "victim": name, "seconds": seconds, "beside": {name: query.id for name, query in beside.items()}}
        print(json.dumps(line), flush=True)
        for query in beside.values():
            query.cancel()
        time.sleep(3)
