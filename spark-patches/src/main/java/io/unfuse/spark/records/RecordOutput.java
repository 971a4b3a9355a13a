package io.unfuse.spark.records;

import io.unfuse.spark.common.Json;

import org.apache.spark.ShuffleDependency;

import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/**
 * The output of a task, for a shuffle, a cache or the action. Each record comes from the records
 * read since the previous one; if there are none, from the same inputs as that one.
 */
final class RecordOutput extends AbstractIterator<Object> {
    /** The destination of records. */
    static final class Target {
        final String link;

        /** Whether values of a key are merged before they are written. */
        final boolean combined;

        private Target(String link, boolean combined) {
            this.link = link;
            this.combined = combined;
        }

        static Target result() {
            return new Target("result", false);
        }

        static Target shuffle(ShuffleDependency<?, ?, ?> dependency) {
            return new Target(shuffleLink(dependency.shuffleId()), dependency.mapSideCombine());
        }

        static String shuffleLink(int shuffle) {
            return "shuffle " + shuffle;
        }

        static String cacheLink(int rdd) {
            return "cache " + rdd;
        }
    }

    /**
     * Up to this number, all sources are checked for each record, whether or not they have ended.
     */
    private static final int FEW = 8;

    final int number;
    private final RecordTask task;
    private final Target target;
    private final int cachedPartition;
    private final boolean isResult;
    private final RecordFile.Rows rows;
    private final RecordTexts texts = new RecordTexts();
    private Iterator<?> records;

    /** For each source, the number of records read before the last output. */
    private long[] read = new long[4];

    private int forgotten;
    private List<RecordSource> sources = Collections.emptyList();

    /** The number of the task's sources when {@link #sources} was computed. */
    private int sourcesOf;

    /** Time since the last record was consumed, ns. */
    long pendingNanos;

    /** The part of it in which no input record was being processed, ns. */
    long aloneNanos;

    /** Time of writing that no record causes, ns. */
    long writeNanos;

    private Object current;
    private boolean open;
    private boolean waits;
    private boolean isKept;

    /** Nothing was read since the previous record. */
    private boolean isOfTheSame;

    RecordOutput(RecordTask task, int number, Target target) {
        this(task, number, target, -1);
    }

    private RecordOutput(RecordTask task, int number, Target target, int cachedPartition) {
        this.task = task;
        this.number = number;
        this.target = target;
        this.cachedPartition = cachedPartition;
        isResult = target.link.equals("result");
        rows = new RecordFile.Rows(task.file(), RecordFile.OUTPUTS, number);
    }

    static RecordOutput ofCache(RecordTask task, int number, int rdd, int partition) {
        return new RecordOutput(task, number, new Target(Target.cacheLink(rdd), false), partition);
    }

    /** The id of a cached record. */
    static long positionId(int partition, long position) {
        return RecordId.mix(((long) partition << 40) + position);
    }

    void of(Iterator<?> iterator) {
        records = iterator;
    }

    boolean hasBegun() {
        return rows.count > 0 || open;
    }

    /** The sources so far have no part in later records. */
    void forget() {
        forgotten = task.sourceCount();
    }

    /**
     * Whether the consumer's time belongs to its records: the functions of an action and those that
     * merge values are the user's.
     */
    boolean isCharged() {
        return target.combined || isResult;
    }

    @Override
    public boolean hasNext() {
        before();
        boolean more = records.hasNext();
        // Otherwise the time is recorded with the record.
        if (!more) {
            after();
        }
        return more;
    }

    @Override
    public Object next() {
        // The consumer does not call hasNext.
        if (open) {
            before();
        }
        Object record = records.next();
        made(record);
        return record;
    }

    private void before() {
        if (task.isBroken()) {
            return;
        }
        try {
            Object slow = null;
            synchronized (task) {
                task.activate(this);
                if (waits) {
                    task.consumed(this);
                    waits = false;
                } else {
                    task.computed();
                }
                if (open && isResult && texts.wants(pendingNanos)) {
                    slow = task.redacted ? null : current;
                    isKept = true;
                }
                current = null;
                if (slow == null) {
                    finishRecord(null);
                    return;
                }
            }
            // Outside: this may run user code.
            String text = RecordTexts.of(slow, null, false);
            synchronized (task) {
                if (!task.isBroken()) {
                    finishRecord(text);
                    task.ignore();
                }
            }
        } catch (Throwable error) {
            task.fail(error);
        }
    }

    private void after() {
        if (!task.isBroken()) {
            synchronized (task) {
                task.computed();
            }
        }
    }

    private void made(Object record) {
        if (task.isBroken()) {
            return;
        }
        try {
            boolean isPair = !isResult && cachedPartition < 0 && record instanceof Product2;
            Object key = isPair ? ((Product2<?, ?>) record)._1() : null;
            if (!isPair || target.combined && RecordId.isShort(key)) {
                synchronized (task) {
                    task.computed();
                    begin(
                            record,
                            isPair ? RecordId.ofKey(key) : RecordId.NONE,
                            cachedPartition >= 0
                                    ? positionId(cachedPartition, rows.count)
                                    : RecordId.NONE);
                }
                return;
            }
            synchronized (task) {
                task.computed();
            }
            Object value = ((Product2<?, ?>) record)._2();
            boolean isRow = RecordId.isRow(value);
            long keyId = isRow ? RecordId.NONE : RecordId.ofKey(key);
            long whole =
                    isRow
                            ? RecordId.of(value)
                            : target.combined ? RecordId.NONE : RecordId.of(record);
            synchronized (task) {
                if (!task.isBroken()) {
                    begin(record, keyId, whole);
                    task.ignore();
                }
            }
        } catch (Throwable error) {
            task.fail(error);
        }
    }

    private void begin(Object record, long key, long whole) {
        current = record;
        open = true;
        waits = true;
        rows.id(key);
        rows.id(whole);
        ranges();
    }

    private void ranges() {
        if (sourcesOf != task.sourceCount()) {
            sourcesOf = task.sourceCount();
            sources = task.sourcesOf(this);
        }
        int touched = 0;
        for (int at = 0; at < sources.size(); at++) {
            RecordSource source = sources.get(at);
            touched += source.count() > seen(source) ? 1 : 0;
        }
        rows.number(forgotten);
        rows.number(touched);
        isOfTheSame = touched == 0;
        for (int at = 0; touched > 0 && at < sources.size(); at++) {
            RecordSource source = sources.get(at);
            long count = source.count();
            long seen = seen(source);
            if (count > seen) {
                rows.number(source.number());
                rows.number(seen);
                rows.number(count - seen);
                read[source.number()] = count;
            }
        }
        if (sources.size() > FEW) {
            sources.removeIf(source -> source.isExhausted() && source.count() == seen(source));
        }
    }

    private long seen(RecordSource source) {
        if (read.length <= source.number()) {
            read = Arrays.copyOf(read, 2 * source.number());
        }
        return read[source.number()];
    }

    private void finishRecord(String text) throws IOException {
        if (!open) {
            return;
        }
        open = false;
        rows.number(pendingNanos);
        // Before the first of several records with the same inputs, all inputs were read, sorted or
        // aggregated.
        rows.number(isOfTheSame ? aloneNanos : 0);
        if (isKept) {
            texts.keep(rows.count, pendingNanos, System.nanoTime() - pendingNanos, text);
            isKept = false;
        }
        current = null;
        pendingNanos = 0;
        aloneNanos = 0;
        if (rows.endRow()) {
            task.ignore();
        }
    }

    /** Closes the output. It does not look at the last record: the task's memory is gone. */
    void close() throws IOException {
        finishRecord(null);
        rows.flush();
    }

    void describe(Json json) {
        json.field("link", target.link)
                .field("combined", target.combined)
                .field("count", rows.count)
                .field("write_ns", writeNanos);
        texts.describe(json);
        json.end();
    }
}
