package io.unfuse.spark.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.unfuse.spark.SparkUnderTest;

import org.apache.hadoop.fs.RawLocalFileSystem;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The data for contention: resources used by tasks, dependencies of stages, memory of caches. */
class ContentionEventsTest {
    @BeforeEach
    void clear() throws InterruptedException {
        SparkUnderTest.run("select 1");
        Thread.sleep(500);
        SparkUnderTest.RECORDER.clear();
    }

    @Test
    void whatTasksUseIsWhatSparkCounts() throws InterruptedException {
        SparkUnderTest.run("select k, count(*), sum(amount) from facts group by k order by k");
        Map<Long, JsonNode> tasks = new HashMap<>();
        for (JsonNode task : SparkUnderTest.RECORDER.events("task")) {
            tasks.put(task.get("task").asLong(), task);
        }
        assertFalse(tasks.isEmpty());
        Map<Long, Double> cpu = new HashMap<>();
        Map<String, Double> units = new HashMap<>();
        for (JsonNode row : metered(tasks.keySet())) {
            assertTrue(row.get("start_ns").asLong() < row.get("end_ns").asLong(), row::toString);
            assertTrue(row.get("blocked_ns").asLong() >= 0, row::toString);
            assertTrue(tasks.containsKey(row.get("task").asLong()), row::toString);
            units.merge(row.get("kind").asText(), row.get("units").asDouble(), Double::sum);
            if (row.get("kind").asText().equals("cpu")) {
                cpu.merge(row.get("task").asLong(), row.get("units").asDouble(), Double::sum);
            }
        }
        double read = 0;
        double written = 0;
        for (JsonNode task : tasks.values()) {
            double counted = task.get("cpu_ns").asLong() / 1e9;
            double found = cpu.get(task.get("task").asLong());
            assertTrue(found > 0.9 * counted, () -> found + " s of " + counted);
            read += task.get("input_bytes").asLong() + task.get("shuffle_read_bytes").asLong();
            written += task.get("shuffle_write_bytes").asLong();
        }
        assertEquals(read, units.get("io-read"));
        assertEquals(written, units.get("io-write"));
        assertTrue(units.get("execution-memory") > 0, units::toString);
    }

    /** Local files with a URI scheme other than {@code file}. */
    public static final class FarFiles extends RawLocalFileSystem {
        @Override
        public URI getUri() {
            return URI.create("far:///");
        }
    }

    @Test
    void filesThatAreNotLocalComeOverTheNetwork(@TempDir Path dir) throws InterruptedException {
        SparkUnderTest.set("fs.far.impl", FarFiles.class.getName());
        String path = dir.resolve("far").toString();
        SparkUnderTest.run(
                "insert overwrite directory '" + path + "' using parquet select * from facts");
        SparkUnderTest.run("select 1");
        Thread.sleep(500);
        SparkUnderTest.RECORDER.clear();
        SparkUnderTest.run("select sum(amount) from parquet.`far://" + path + "`");
        double read = 0;
        Set<Long> tasks = new HashSet<>();
        for (JsonNode task : SparkUnderTest.RECORDER.events("task")) {
            tasks.add(task.get("task").asLong());
            read += task.get("input_bytes").asLong();
        }
        assertTrue(read > 0);
        double fetched = 0;
        for (JsonNode row : metered(tasks)) {
            fetched += row.get("kind").asText().equals("network") ? row.get("units").asDouble() : 0;
        }
        assertTrue(fetched > 0.9 * read, fetched + " of " + read);
    }

    /** Waits until each of these tasks has a row; returns all rows seen by then. */
    private static List<JsonNode> metered(Set<Long> tasks) throws InterruptedException {
        for (int look = 0; look < 50; look++) {
            Thread.sleep(100);
            Set<Long> seen = new HashSet<>();
            List<JsonNode> rows = new ArrayList<>();
            for (JsonNode event : SparkUnderTest.RECORDER.events("intervals")) {
                for (JsonNode row : event.get("rows")) {
                    rows.add(row);
                    seen.add(row.get("task").asLong());
                }
            }
            if (seen.containsAll(tasks)) {
                return rows;
            }
        }
        throw new AssertionError("tasks without a row");
    }

    @Test
    void parentsAreStagesThatRan() {
        SparkUnderTest.set("spark.sql.autoBroadcastJoinThreshold", "-1");
        try {
            SparkUnderTest.run(
                    "select label, count(*) from facts join dim using (k) group by label");
        } finally {
            SparkUnderTest.set("spark.sql.autoBroadcastJoinThreshold", null);
        }
        Set<Integer> ran = new HashSet<>();
        Set<Integer> read = new HashSet<>();
        int last = -1;
        for (JsonNode stage : SparkUnderTest.RECORDER.events("stage")) {
            int id = stage.get("stage").asInt();
            ran.add(id);
            last = Math.max(last, id);
            if (stage.has("parents")) {
                for (JsonNode parent : stage.get("parents")) {
                    read.add(parent.asInt());
                }
            }
        }
        assertTrue(ran.size() > 3, ran::toString);
        assertTrue(ran.containsAll(read), () -> read + " of " + ran);
        ran.remove(last);
        assertEquals(ran, read, "every stage but the last is read by another");
    }

    @Test
    void aCacheHoldsMemoryUntilItIsDropped() {
        SparkUnderTest.run("cache table kept as select id, amount from facts");
        List<JsonNode> cached = SparkUnderTest.RECORDER.events("cached");
        assertFalse(cached.isEmpty());
        JsonNode full = cached.get(cached.size() - 1);
        assertTrue(full.get("memory_bytes").asLong() > 0, full::toString);
        Set<Integer> stages = new HashSet<>();
        for (JsonNode stage : SparkUnderTest.RECORDER.events("stage")) {
            stages.add(stage.get("stage").asInt());
        }
        assertTrue(stages.contains(full.get("stage").asInt()), full::toString);
        SparkUnderTest.RECORDER.clear();
        SparkUnderTest.run("uncache table kept");
        cached = SparkUnderTest.RECORDER.events("cached");
        assertEquals(0, cached.get(cached.size() - 1).get("memory_bytes").asLong());
        assertEquals(full.get("rdd"), cached.get(cached.size() - 1).get("rdd"));
    }
}
