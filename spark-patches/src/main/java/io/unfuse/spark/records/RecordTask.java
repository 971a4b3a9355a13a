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
 * The records of one task attempt. All time between two looks at the clock goes to somebody: to the
 * source that is being read, or to the record that was read last, whose consequences the code in
 * between computes.
 *
 * <p>A task is followed by its thread; a thread that feeds a Python process reads sources too, and
 * what it does is counted, not timed.
 */
final class RecordTask {
    /**
     * Pauses of the JVM and lost CPUs, which are nobody's doing, are looked for in times longer
     * than this.
     */
    private static final long SUSPICIOUS_NANOS = 1_000_000;

    /** A merge that takes less is part of the shuffle's latency, like reading it. */
    static final long MERGE_NANOS = 20_000;

    private static final int MOST_MERGES = 100_000;

    /** A task that reads more sources, such as one of a cartesian product, is not followed. */
    private static final int MOST_SOURCES = 1000;

    private static final List<GarbageCollectorMXBean> COLLECTORS = pausing();

    /**
     * Task attempt ids begin again with another SparkContext, and process ids on other machines.
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

    /** How many sources there were when each RDD that is being cached began to be computed. */
    private final Deque<Integer> nested = new ArrayDeque<>();

    private final Map<Long, Long> merges = new HashMap<>();
    private RecordSource owner;
    private RecordOutput active;
    private long mark = System.nanoTime();
    private final RunDelay runDelay = new RunDelay();
    private long paused = collectedMillis();
    private long delayed = runDelay.nanos();
    private long unownedNanos;

    /** Fetching, decoding and merging what the next source of a shuffle gives, ns. */
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

    /** True if nothing is noted any more: it failed, or the task has ended. */
    boolean isBroken() {
        return broken || done;
    }

    /** What was noted of this task is not to be trusted any more. */
    void fail(Throwable error) {
        broken = true;
        Agent.failed("following records", error);
        try {
            file.discard();
        } catch (Throwable ignored) {
            // It was to be thrown away.
        }
    }

    RecordFile file() {
        return file;
    }

    /** True on the thread whose time is told. */
    boolean isTimed() {
        return Thread.currentThread() == thread;
    }

    /** Ns since the last look, without pauses of the JVM and without waiting for a CPU. */
    private long lap() {
        if (!isTimed()) {
            return 0;
        }
        long now = System.nanoTime();
        long nanos = now - mark;
        mark = now;
        // Often enough, so that what many short times lost is not taken from a long one.
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

    /** When the clock was looked at last, {@link System#nanoTime()}. */
    long lastLook() {
        return mark;
    }

    /** Those whose time is that of pauses: the cycles of concurrent ones are not. */
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

    /** A record was read, and what follows is its doing. */
    void owned(RecordSource source) {
        if (isTimed()) {
            owner = source;
        }
    }

    /** A source has no more: what follows is nobody's doing. */
    void disowned(RecordSource source) {
        if (owner == source) {
            owner = null;
        }
    }

    void activate(RecordOutput output) {
        active = output;
    }

    /** An output's record was consumed: written to a shuffle, or given to the action. */
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
        // What it did before it was read.
        read(source);
        if (source.isShuffle()) {
            source.readNanos += mergeNanos;
            mergeNanos = 0;
        }
        for (RecordOutput output : outputs) {
            if (output.hasBegun()) {
                // One after the other, as in a coalesced RDD: earlier sources are done with.
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

    /** The sources whose records go into an output. */
    List<RecordSource> sourcesOf(RecordOutput output) {
        List<RecordSource> of = new ArrayList<>();
        for (RecordSource source : sources) {
            // What came later was made while the output was read: there is one output that is read
            // last.
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

    /** Ns in merges of a key's values, which are told once. */
    long mergedNanos(long key) {
        Long nanos = merges.isEmpty() ? null : merges.remove(key);
        return nanos == null ? 0 : nanos;
    }

    /** What is to be merged was fetched and decoded. */
    synchronized void fetched() {
        mergeNanos += lap();
    }

    /**
     * What was done since the last look was our own work. Only after work that takes a while: to
     * look takes a while too.
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
