package io.unfuse.spark.records;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;

import scala.collection.Iterator;

import java.io.File;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.security.SecureRandom;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The records of one task attempt. All time between two readings of the clock is attributed: to the
 * source that is being read, or to the record that was read last, which the following code
 * processes.
 *
 * <p>A task is traced on its thread. A thread that feeds a Python process also reads sources; its
 * records are counted without times.
 */
final class RecordTask {
    /**
     * In times longer than this, pauses of the JVM and lost CPUs, which no record causes, are
     * looked for.
     */
    private static final long SUSPICIOUS_NANOS = 1_000_000;

    /** A shorter merge is part of the shuffle's latency, like reading. */
    static final long MERGE_NANOS = 20_000;

    private static final int MOST_MERGES = 100_000;

    /** A task with more sources, such as one of a cartesian product, is not traced. */
    private static final int MOST_SOURCES = 1000;

    private static final List<GarbageCollectorMXBean> COLLECTORS = pausing();

    /**
     * Task attempt ids start again with another SparkContext, and process ids on other machines.
     */
    private static final AtomicLong FILES = new AtomicLong();

    private static final String FILE_PREFIX =
            "task-" + Long.toHexString(new SecureRandom().nextLong()) + "-";

    final long id;
    final boolean redacted;
    private final int stage;
    private final int attempt;
    private final int partition;
    private final Thread thread = Thread.currentThread();
    private final RecordFile file;
    private final List<RecordSource> sources = new ArrayList<>();
    private final List<RecordOutput> outputs = new ArrayList<>();

    /** The number of sources when the computation of each RDD being cached began. */
    private final Deque<Integer> nested = new ArrayDeque<>();

    private final Map<Long, Long> merges = new HashMap<>();
    private RecordSource owner;
    private RecordOutput active;
    private long mark = System.nanoTime();
    private final RunDelay runDelay = new RunDelay();
    private long paused = collectedMillis();
    private long delayed = runDelay.nanos();
    private long unownedNanos;

    /** Time of fetching, decoding and merging the next record of a shuffle, ns. */
    private long mergeNanos;

    /** When {@link #paused} and {@link #delayed} were read. */
    private long looked = mark;

    private volatile boolean broken;
    private volatile boolean done;

    RecordTask(TaskContext context, File dir, boolean redacted) {
        id = context.taskAttemptId();
        stage = context.stageId();
        attempt = context.stageAttemptNumber();
        partition = context.partitionId();
        this.redacted = redacted;
        file = new RecordFile(new File(dir, FILE_PREFIX + FILES.incrementAndGet()));
    }

    /** True if tracing has ended: it failed, or the task has ended. */
    boolean isBroken() {
        return broken || done;
    }

    /** The trace of this task is not usable any more. */
    void fail(Throwable error) {
        broken = true;
        Agent.failed("following records", error);
        try {
            file.discard();
        } catch (Throwable ignored) {
            // The file would be deleted anyway.
        }
    }

    RecordFile file() {
        return file;
    }

    /** True on the thread whose time is measured. */
    boolean isTimed() {
        return Thread.currentThread() == thread;
    }

    /** Time since the last reading, ns, without pauses of the JVM and waits for a CPU. */
    private long lap() {
        if (!isTimed()) {
            return 0;
        }
        long now = System.nanoTime();
        long nanos = now - mark;
        mark = now;
        // Often enough that the loss of many short times is not subtracted from a long one.
        if (now - looked > SUSPICIOUS_NANOS) {
            long pauses = collectedMillis();
            long delays = runDelay.nanos();
            if (nanos > SUSPICIOUS_NANOS) {
                nanos = Math.max(0, nanos - (pauses - paused) * 1_000_000 - (delays - delayed));
            }
            paused = pauses;
            delayed = delays;
            looked = now;
        }
        return nanos;
    }

    /** The last reading of the clock, {@link System#nanoTime()}. */
    long lastLook() {
        return mark;
    }

    /** Collectors whose time is that of pauses, without the cycles of concurrent ones. */
    private static List<GarbageCollectorMXBean> pausing() {
        List<GarbageCollectorMXBean> pausing =
                new ArrayList<>(ManagementFactory.getGarbageCollectorMXBeans());
        pausing.removeIf(
                collector ->
                        collector.getName().contains("Cycles")
                                || collector.getName().contains("Concurrent"));
        return pausing;
    }

    private static long collectedMillis() {
        long sum = 0;
        for (GarbageCollectorMXBean collector : COLLECTORS) {
            sum += Math.max(0, collector.getCollectionTime());
        }
        return sum;
    }

    /** The code between sources and outputs has run until now. */
    void computed() {
        long nanos = lap();
        if (active != null) {
            active.pendingNanos += nanos;
        }
        if (owner != null) {
            owner.pendingNanos += nanos;
            return;
        }
        unownedNanos += nanos;
        if (active != null) {
            active.aloneNanos += nanos;
        }
    }

    /** A source has been read until now. */
    void read(RecordSource source) {
        source.readNanos += lap();
    }

    /** A record was read; the time that follows is attributed to it. */
    void owned(RecordSource source) {
        if (isTimed()) {
            owner = source;
        }
    }

    /** A source has ended; the time that follows is not attributed to a record. */
    void disowned(RecordSource source) {
        if (owner == source) {
            owner = null;
        }
    }

    void activate(RecordOutput output) {
        active = output;
    }

    /** An output's record was consumed: written to a shuffle, or passed to the action. */
    void consumed(RecordOutput output) {
        if (output.isCharged()) {
            computed();
        } else {
            output.writeNanos += lap();
        }
    }

    synchronized void begin() {
        computed();
    }

    synchronized Object source(Iterator<?> records, RDD<?> rdd, int partition)
            throws ReflectiveOperationException {
        RecordSource.Kind kind = RecordSource.Kind.of(rdd);
        if (kind == null) {
            computed();
            return records;
        }
        if (sources.size() >= MOST_SOURCES) {
            throw new IllegalStateException(
                    "a task that reads more than " + MOST_SOURCES + " partitions is not followed");
        }
        RecordSource source = new RecordSource(this, sources.size(), kind, rdd, partition, records);
        // The work before it was read.
        read(source);
        if (source.isShuffle()) {
            source.readNanos += mergeNanos;
            mergeNanos = 0;
        }
        for (RecordOutput output : outputs) {
            if (output.hasBegun()) {
                // One after the other, as in a coalesced RDD: earlier sources are finished.
                output.forget();
            }
        }
        sources.add(source);
        return source;
    }

    synchronized void nest() {
        nested.push(sources.size());
    }

    synchronized Object cached(Iterator<?> records, RDD<?> rdd, int partition) {
        int first = nested.isEmpty() ? sources.size() : nested.pop();
        if (!rdd.getStorageLevel().isValid()) {
            return records;
        }
        return add(records, RecordOutput.ofCache(this, outputs.size(), rdd.id(), partition), first);
    }

    synchronized Object output(Iterator<?> records, Object dependency) {
        computed();
        RecordOutput.Target target =
                dependency == null
                        ? RecordOutput.Target.result()
                        : RecordOutput.Target.shuffle((ShuffleDependency<?, ?, ?>) dependency);
        return add(records, new RecordOutput(this, outputs.size(), target), 0);
    }

    private Object add(Iterator<?> records, RecordOutput output, int first) {
        for (RecordSource source : sources.subList(first, sources.size())) {
            if (source.output < 0) {
                source.output = output.number;
            }
        }
        output.of(records);
        outputs.add(output);
        return output;
    }

    /** The sources of an output's records. */
    List<RecordSource> sourcesOf(RecordOutput output) {
        List<RecordSource> of = new ArrayList<>();
        for (RecordSource source : sources) {
            // Later sources were opened while the output was read: one output is read last.
            if (source.output == output.number
                    || (source.output < 0 && output.number == outputs.size() - 1)) {
                of.add(source);
            }
        }
        return of;
    }

    int sourceCount() {
        return sources.size();
    }

    /** A value was merged into those of a key. */
    synchronized void merged(long key) {
        long nanos = lap();
        if (nanos >= MERGE_NANOS && (merges.size() < MOST_MERGES || merges.containsKey(key))) {
            merges.merge(key, nanos, Long::sum);
        } else {
            mergeNanos += nanos;
        }
    }

    /** Time of merging a key's values, ns, which is reported once. */
    long mergedNanos(long key) {
        Long nanos = merges.isEmpty() ? null : merges.remove(key);
        return nanos == null ? 0 : nanos;
    }

    /** The values to merge were fetched and decoded. */
    synchronized void fetched() {
        mergeNanos += lap();
    }

    /**
     * The time since the last reading was our own work. Only after longer work, because reading the
     * clock takes a while, too.
     */
    void ignore() {
        lap();
    }

    synchronized void finish(boolean succeeded) throws IOException {
        done = true;
        runDelay.close();
        if (broken) {
            return;
        }
        if (!succeeded || (sources.isEmpty() && outputs.isEmpty())) {
            file.discard();
            return;
        }
        for (RecordSource source : sources) {
            source.close();
        }
        for (RecordOutput output : outputs) {
            output.close();
        }
        file.close();
        unownedNanos += mergeNanos;
        for (long nanos : merges.values()) {
            unownedNanos += nanos;
        }
        Json event =
                new Json(1024)
                        .field("type", "records")
                        .field("file", file.name())
                        .field("app", SparkEnv.get().conf().getAppId())
                        .field("stage", stage)
                        .field("attempt", attempt)
                        .field("task", id)
                        .field("partition", partition)
                        .field("unowned_ns", unownedNanos)
                        .array("sources");
        for (RecordSource source : sources) {
            source.describe(event.item());
        }
        event.endArray().array("outputs");
        for (RecordOutput output : outputs) {
            output.describe(event.item());
        }
        if (!Agent.event(event.endArray())) {
            file.discard();
        }
    }
}
