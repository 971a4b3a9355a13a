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

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

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
        eventually(() -> checkUse(tasks));
    }

    private static void checkUse(Map<Long, JsonNode> tasks) {
        Map<Long, Double> cpu = new HashMap<>();
        Map<String, Double> units = new HashMap<>();
        for (JsonNode row : metered(tasks.keySet())) {
            assertTrue(row.get("start_ns").asLong() < row.get("end_ns").asLong(), row::toString);
            assertTrue(row.get("blocked_ns").asLong() >= 0, row::toString);
            units.merge(row.get("kind").asText(), row.get("units").asDouble(), Double::sum);
            if (row.get("kind").asText().equals("cpu")) {
                cpu.merge(row.get("task").asLong(), row.get("units").asDouble(), Double::sum);
            }
        }
        double written = 0;
        for (JsonNode task : tasks.values()) {
            double counted = task.get("cpu_ns").asLong() / 1e9;
            double found = cpu.getOrDefault(task.get("task").asLong(), 0.0);
            assertTrue(found > 0.9 * counted, () -> found + " s of " + counted);
            written += task.get("shuffle_write_bytes").asLong();
        }
        // What is in the page cache does not come from a disk.
        double fromDisk = units.getOrDefault("io-read", 0.0);
        long ofProcess = readFromDisks();
        assertTrue(fromDisk <= ofProcess, fromDisk + " of " + ofProcess);
        assertEquals(written, units.get("io-write"));
        assertTrue(units.getOrDefault("execution-memory", 0.0) > 0, units::toString);
    }

    /** Bytes that Linux has read from disks for this process. */
    private static long readFromDisks() {
        try (Stream<String> lines = Files.lines(Path.of("/proc/self/io"))) {
            String line = lines.filter(each -> each.startsWith("read_bytes: ")).findFirst().get();
            return Long.parseLong(line.substring(line.indexOf(' ') + 1));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    @Test
    void onlyWhatIsReadFromADiskCounts(@TempDir Path dir) throws Exception {
        Path file = dir.resolve("bytes");
        byte[] bytes = new byte[1 << 20];
        Files.write(file, bytes);
        DiskReads reads = DiskReads.ofCurrentThread();
        assertTrue(reads.sinceLastLook() >= 0, "Linux counts what threads read");
        // The file is in the page cache, because it was just written.
        Files.readAllBytes(file);
        assertEquals(0, reads.sinceLastLook());
        DiskReads[] ended = new DiskReads[1];
        Thread other = new Thread(() -> ended[0] = DiskReads.ofCurrentThread());
        other.start();
        other.join();
        // Linux may know the thread for a moment longer than Java.
        eventually(() -> assertEquals(-1, ended[0].sinceLastLook()));
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
        double all = read;
        eventually(
                () -> {
                    double fetched = 0;
                    for (JsonNode row : metered(tasks)) {
                        boolean remote = row.get("kind").asText().equals("network");
                        fetched += remote ? row.get("units").asDouble() : 0;
                    }
                    assertTrue(fetched > 0.9 * all, fetched + " of " + all);
                });
    }

    /** The rows of these tasks so far. */
    private static List<JsonNode> metered(Set<Long> tasks) {
        List<JsonNode> rows = new ArrayList<>();
        for (JsonNode event : SparkUnderTest.RECORDER.events("intervals")) {
            for (JsonNode row : event.get("rows")) {
                if (tasks.contains(row.get("task").asLong())) {
                    rows.add(row);
                }
            }
        }
        return rows;
    }

    /** Repeats the check until it passes, for 10 s: the last rows of a task come after its end. */
    private static void eventually(Runnable check) throws InterruptedException {
        for (int look = 0; look < 100; look++) {
            try {
                check.run();
                return;
            } catch (AssertionError notYet) {
                Thread.sleep(100);
            }
        }
        check.run();
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
