-- reference
SELECT o_orderpriority, sum(running), sum(l_suppkey) FROM (
    SELECT /*+ MERGE(orders) */ o_orderpriority, l_suppkey,
        sum(l_suppkey) OVER (PARTITION BY l_partkey ORDER BY l_shipdate) AS running
    FROM lineitem JOIN orders ON l_orderkey = o_orderkey AND l_suppkey <> o_custkey
    WHERE l_shipdate > DATE '1998-06-01')
GROUP BY o_orderpriority;

-- Filter
SELECT o_orderpriority, sum(running), sum(l_suppkey) FROM (
    SELECT /*+ MERGE(orders) */ o_orderpriority, l_suppkey,
        sum(l_suppkey) OVER (PARTITION BY l_partkey ORDER BY l_shipdate) AS running
    FROM lineitem JOIN orders ON l_orderkey = o_orderkey AND l_suppkey <> o_custkey
    WHERE l_shipdate > date_add(DATE '1998-06-01', cast(spin(l_suppkey, 1500) - l_suppkey AS int)))
GROUP BY o_orderpriority;

-- SortMergeJoin
SELECT o_orderpriority, sum(running), sum(l_suppkey) FROM (
    SELECT /*+ MERGE(orders) */ o_orderpriority, l_suppkey,
        sum(l_suppkey) OVER (PARTITION BY l_partkey ORDER BY l_shipdate) AS running
    FROM lineitem JOIN orders ON l_orderkey = o_orderkey AND spin(l_suppkey, 25000) <> o_custkey
    WHERE l_shipdate > DATE '1998-06-01')
GROUP BY o_orderpriority;

-- Project
SELECT o_orderpriority, sum(running), sum(l_suppkey) FROM (
    SELECT /*+ MERGE(orders) */ o_orderpriority, l_suppkey,
        sum(spin(l_suppkey, 25000)) OVER (PARTITION BY l_partkey ORDER BY l_shipdate) AS running
    FROM lineitem JOIN orders ON l_orderkey = o_orderkey AND l_suppkey <> o_custkey
    WHERE l_shipdate > DATE '1998-06-01')
GROUP BY o_orderpriority;

-- HashAggregate
SELECT o_orderpriority, sum(running), sum(spin(l_suppkey, 25000)) FROM (
    SELECT /*+ MERGE(orders) */ o_orderpriority, l_suppkey,
        sum(l_suppkey) OVER (PARTITION BY l_partkey ORDER BY l_shipdate) AS running
    FROM lineitem JOIN orders ON l_orderkey = o_orderkey AND l_suppkey <> o_custkey
    WHERE l_shipdate > DATE '1998-06-01')
GROUP BY o_orderpriority;
