package io.unfuse.spark;

import java.util.LinkedHashMap;
import java.util.Map;

/** Queries that together use the operators with code generation. */
public final class Queries {
    private Queries() {}

    /** Queries by purpose. */
    public static final Map<String, String> ALL = new LinkedHashMap<>();

    static {
        ALL.put(
                "scan, filter, broadcast join, aggregate",
                "select d.label, sum(f.amount) s from facts f join dim d on f.k = d.k where f.id > 100 group by d.label");
        ALL.put(
                "sort merge join",
                "select /*+ merge(d) */ f.id, d.v from facts f join dim d on f.k = d.k where f.amount > d.v");
        ALL.put(
                "full outer sort merge join with condition",
                "select /*+ merge(d) */ count(f.id), count(d.v) from facts f full outer join dim d"
                        + " on f.id = d.k and f.amount > d.v");
        ALL.put(
                "left outer broadcast join with condition",
                "select f.id, d.label from facts f left join dim d on f.k = d.k and f.id % 7 = d.v % 7");
        ALL.put(
                "shuffled hash join",
                "select /*+ shuffle_hash(d) */ count(*) from facts f join dim d on f.k = d.k");
        ALL.put(
                "semi and anti join",
                "select count(*) from facts f where k in (select k from dim) and not exists"
                        + " (select 1 from dim where dim.v = f.id)");
        ALL.put(
                "nested loop join",
                "select count(*) from facts f join dim d on f.k < d.k and f.id < 50");
        ALL.put("sort", "select id, name from facts where k = 3 order by name, id desc");
        ALL.put(
                "window",
                "select id, sum(amount) over (partition by k order by id) s, rank() over (partition by k order by amount) r"
                        + " from facts");
        ALL.put(
                "explode",
                "select e, count(*) from facts lateral view explode(list) t as e where id < 100 group by e");
        ALL.put(
                "outer posexplode",
                "select id, p, e from facts lateral view outer posexplode(filter(list, x -> x > 5)) t as p, e where id < 9");
        ALL.put(
                "union",
                "select k, v from dim union all select id, k from facts where id < 10 union all select 1, 2");
        ALL.put("limit", "select id * 2 from facts where k > 2 limit 7");
        ALL.put("limit of a sort", "select id, amount from facts order by amount desc limit 5");
        ALL.put(
                "scalar subquery",
                "select k, count(*) from facts where amount > (select avg(v) * 10 from dim) group by k order by k");
        ALL.put(
                "rollup",
                "select k, name, sum(price), grouping(k) from facts group by rollup(k, name)");
        ALL.put(
                "distinct aggregates",
                "select name, count(distinct k), count(distinct id), max(day) from facts group by name");
        ALL.put(
                "aggregate without keys",
                "select sum(price), min(name), max(amount), avg(id) from facts where k <> 4");
        ALL.put(
                "common subexpressions and strings",
                "select case when length(name) > 6 then upper(name) else lower(name) end n, regexp_replace(name, '/\\\\*', '//')"
                        + " from facts where name like 'name%' and (id + k) * (id + k) > 50");
        ALL.put(
                "sample",
                "select count(*), sum(id) from facts tablesample (50 percent) repeatable (1)");
        ALL.put("range", "select sum(id) from range(1000) where id % 3 = 1");
        ALL.put("many columns", manyColumns());
    }

    /** A query with so many columns that Spark splits the code into many methods. */
    private static String manyColumns() {
        StringBuilder columns = new StringBuilder();
        for (int i = 0; i < 90; i++) {
            columns.append(i == 0 ? "" : ", ")
                    .append("sum(case when k = ")
                    .append(i % 17)
                    .append(" then amount + ")
                    .append(i)
                    .append(" else price end) c")
                    .append(i);
        }
        return "select name, " + columns + " from facts group by name";
    }
}
