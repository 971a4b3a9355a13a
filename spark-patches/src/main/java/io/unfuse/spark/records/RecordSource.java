package io.unfuse.spark.records;

import io.unfuse.spark.common.Json;
import io.unfuse.spark.common.ScalaSeq;

import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.spark.NarrowDependency;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.rdd.RDD;
import org.apache.spark.unsafe.types.UTF8String;

import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

import java.io.IOException;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;

/**
 * An input of a task: a partition of a source, of a shuffle or of a cached RDD, traced record by
 * record.
 */
final class RecordSource extends AbstractIterator<Object> {
    /** The properties of an RDD that is a source. */
    static final class Kind {
        final String name;

        /** Where its records were written, as in {@link RecordOutput.Target#link}. */
        final List<String> links;

        /** How they are identified: {@code key}, {@code whole} or {@code position}. */
        final String by;

        private Kind(String name, List<String> links, String by) {
            this.name = name;
            this.links = links;
            this.by = by;
        }

        /** Null for an RDD that is computed from others in the same task. */
        static Kind of(RDD<?> rdd) throws ReflectiveOperationException {
            if (rdd.getStorageLevel().isValid()) {
                return new Kind(
                        "cached", List.of(RecordOutput.Target.cacheLink(rdd.id())), "position");
            }
            String name = rdd.getClass().getSimpleName();
            List<String> links = new ArrayList<>();
            boolean keyed = false;
            boolean narrow = false;
            for (Object dependency :
                    ScalaSeq.toList(RDD.class.getMethod("dependencies").invoke(rdd))) {
                if (dependency instanceof ShuffleDependency) {
                    ShuffleDependency<?, ?, ?> shuffle = (ShuffleDependency<?, ?, ?>) dependency;
                    links.add(RecordOutput.Target.shuffleLink(shuffle.shuffleId()));
                    keyed |= shuffle.aggregator().isDefined();
                } else {
                    narrow |= dependency instanceof NarrowDependency;
                }
            }
            // One that is grouped with a shuffle has both kinds of parents.
            if (narrow && links.isEmpty()) {
                return null;
            }
            if (links.isEmpty()) {
                return new Kind(
                        name.equals("HadoopRDD")
                                        || name.equals("NewHadoopRDD")
                                        || name.equals("FileScanRDD")
                                ? "file"
                                : "other",
                        links,
                        "position");
            }
            keyed |= !name.equals("ShuffledRDD") && !name.equals("ShuffledRowRDD");
            return new Kind("shuffle", links, keyed ? "key" : "whole");
        }
    }

    private final RecordTask task;
    private final int number;
    private final Kind kind;
    private final RDD<?> rdd;
    private final int partition;
    private final Iterator<?> records;
    private final RecordFile.Rows rows;
    private final RecordTexts texts = new RecordTexts();
    private final Object schema;
    private final List<String> files = new ArrayList<>();
    private final List<Long> fileStarts = new ArrayList<>();
    private final List<Long> filePositions = new ArrayList<>();

    /** Several files, one after the other; a Hadoop partition has one file. */
    private final boolean hasSeveralFiles;

    /** Whether a record's id is known without its content, and without user code. */
    private final boolean isByPosition;

    /** Whether its keys are the offsets of lines. */
    private final boolean isOfLines;

    private UTF8String lastFile;
    private long lastFileStart;
    private boolean isTimed = true;

    /** The output that gets its records, if known. */
    int output = -1;

    /** Time of the record read last, so far, ns. */
    long pendingNanos;

    /** Time of reading, ns. */
    long readNanos;

    private Object current;
    private long currentId;
    private long currentBegan;
    private boolean open;
    private boolean isKept;
    private boolean exhausted;
    private String currentText;

    RecordSource(
            RecordTask task,
            int number,
            Kind kind,
            RDD<?> rdd,
            int partition,
            Iterator<?> records) {
        this.task = task;
        this.number = number;
        this.kind = kind;
        this.rdd = rdd;
        this.partition = partition;
        this.records = records;
        rows = new RecordFile.Rows(task.file(), RecordFile.INPUTS, number);
        schema = kind.name.equals("file") ? schema(rdd) : null;
        isByPosition = kind.by.equals("position");
        isOfLines = kind.name.equals("file") && readsLines(rdd);
        hasSeveralFiles = rdd.getClass().getSimpleName().equals("FileScanRDD");
        if (kind.name.equals("file") && !hasSeveralFiles) {
            // The file was just opened.
            lookAtFile();
        }
    }

    /**
     * Whether the input format of a Hadoop RDD yields lines; other classes have pairs of the same
     * types.
     */
    private static boolean readsLines(RDD<?> rdd) {
        for (Field field : rdd.getClass().getDeclaredFields()) {
            try {
                if (field.getType() == Class.class && field.getName().endsWith("nputFormatClass")) {
                    field.setAccessible(true);
                    Class<?> format = (Class<?>) field.get(rdd);
                    while (format != null && !format.getSimpleName().equals("TextInputFormat")) {
                        format = format.getSuperclass();
                    }
                    return format != null;
                }
            } catch (ReflectiveOperationException | RuntimeException e) {
                return true;
            }
        }
        return true;
    }

    private static Object schema(RDD<?> rdd) {
        try {
            return rdd.getClass().getMethod("readSchema").invoke(rdd);
        } catch (ReflectiveOperationException | LinkageError e) {
            return null;
        }
    }

    /** Number of records read. */
    long count() {
        return rows.count + (open ? 1 : 0);
    }

    int number() {
        return number;
    }

    boolean isShuffle() {
        return kind.name.equals("shuffle");
    }

    boolean isExhausted() {
        return exhausted;
    }

    @Override
    public boolean hasNext() {
        before();
        boolean more = records.hasNext();
        after(more);
        return more;
    }

    @Override
    public Object next() {
        before();
        Object record = records.next();
        took(record);
        return record;
    }

    private void before() {
        if (task.isBroken()) {
            return;
        }
        Object slow = null;
        synchronized (task) {
            isTimed &= task.isTimed();
            task.computed();
            // Its reader may reuse the object for the next record.
            if (current != null) {
                if (texts.wants(pendingNanos)) {
                    slow = current;
                    isKept = true;
                }
                current = null;
            }
        }
        // Outside: this may run user code.
        if (slow != null && !task.redacted) {
            currentText = RecordTexts.of(slow, schema, kind.by.equals("key"));
            ignore();
        }
    }

    private void ignore() {
        synchronized (task) {
            task.ignore();
        }
    }

    private void after(boolean more) {
        if (task.isBroken()) {
            return;
        }
        synchronized (task) {
            try {
                task.read(this);
                if (!more) {
                    exhausted = true;
                    task.disowned(this);
                    finishRecord();
                    rows.release();
                    task.ignore();
                }
            } catch (Throwable error) {
                task.fail(error);
            }
        }
    }

    private void took(Object record) {
        if (task.isBroken()) {
            return;
        }
        try {
            if (isByPosition) {
                synchronized (task) {
                    task.read(this);
                    begin(record, position(record));
                }
                return;
            }
            synchronized (task) {
                task.read(this);
            }
            long id = kind.by.equals("whole") ? RecordId.of(record) : RecordId.NONE;
            if (id == RecordId.NONE && record instanceof Product2) {
                id = RecordId.ofKey(((Product2<?, ?>) record)._1());
            }
            synchronized (task) {
                if (!task.isBroken()) {
                    begin(record, id);
                    task.ignore();
                }
            }
        } catch (Throwable error) {
            task.fail(error);
        }
    }

    private void begin(Object record, long id) throws IOException {
        finishRecord();
        current = record;
        currentBegan = task.lastLook();
        open = true;
        currentId = id;
        pendingNanos = kind.by.equals("key") ? task.mergedNanos(id) : 0;
        if (hasSeveralFiles) {
            lookAtFile();
        }
        task.owned(this);
    }

    private long position(Object record) {
        if (kind.name.equals("cached")) {
            return RecordOutput.positionId(partition, count());
        }
        return isOfLines && isLine(record)
                ? ((LongWritable) ((Product2<?, ?>) record)._1()).get()
                : RecordId.NONE;
    }

    /** A line of a text file, with its offset. */
    private static boolean isLine(Object record) {
        return record instanceof Product2
                && ((Product2<?, ?>) record)._1() instanceof LongWritable
                && ((Product2<?, ?>) record)._2() instanceof Text;
    }

    private void lookAtFile() {
        UTF8String file = InputFileBlockHolder.getInputFilePath();
        long start = InputFileBlockHolder.getStartOffset();
        if (file != lastFile || start != lastFileStart) {
            lastFile = file;
            lastFileStart = start;
            files.add(file.toString());
            fileStarts.add(start);
            filePositions.add(Math.max(0, count() - 1));
        }
    }

    private void finishRecord() throws IOException {
        if (!open) {
            return;
        }
        open = false;
        rows.number(pendingNanos);
        rows.id(currentId);
        // Its time may have been added after the next record was requested; its place is known
        // anyway.
        if (isKept || texts.wants(pendingNanos)) {
            texts.keep(rows.count, pendingNanos, currentBegan, currentText);
            isKept = false;
            currentText = null;
        }
        if (rows.endRow()) {
            task.ignore();
        }
    }

    /** Closes the source. It does not look at the last record: the task's memory is gone. */
    void close() throws IOException {
        current = null;
        finishRecord();
        rows.flush();
    }

    void describe(Json json) {
        json.field("kind", kind.name)
                .field("by", kind.by)
                .strings("links", kind.links)
                .field("rdd", rdd.id())
                .field("name", rdd.toString())
                .field("partition", partition)
                .field("count", rows.count)
                .field("read_ns", readNanos)
                .field("timed", isTimed)
                .field("lines", isOfLines)
                .field("output", output)
                .strings("files", files)
                .numbers("file_starts", fileStarts)
                .numbers("file_positions", filePositions);
        texts.describe(json);
        json.end();
    }
}
