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
 * What a task reads: a partition of a source, of a shuffle or of a cached RDD, followed record by
 * record.
 */
final class RecordSource extends AbstractIterator<Object> {
    /** What is known of an RDD that is a source. */
    static final class Kind {
        final String name;

        /** Where its records were written, in {@link RecordOutput.Target#link}'s words. */
        final List<String> links;

        /** What they are told by: {@code key}, {@code whole} or {@code position}. */
        final String by;

        private Kind(String name, List<String> links, String by) {
            this.name = name;
            this.links = links;
            this.by = by;
        }

        /** Null for an RDD that computes from others in the same task. */
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
            // One that is grouped with a shuffle has both.
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

    /** One after the other, as the reader comes to them; a Hadoop partition is of one file. */
    private final boolean hasSeveralFiles;

    /** What a record is told by is known without looking into it, and without code of the user. */
    private final boolean isByPosition;

    /** Its keys are where lines begin. */
    private final boolean isOfLines;

    private UTF8String lastFile;
    private long lastFileStart;
    private boolean isTimed = true;

    /** The output that its records go into, where that is known. */
    int output = -1;

    /** Time that the record read last has taken so far, ns. */
    long pendingNanos;

    /** Time in reading, ns. */
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
            // It has just been opened.
            lookAtFile();
        }
    }

    /**
     * Whether the input format of a Hadoop RDD gives lines; so do other classes that have pairs of
     * such types.
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

    /** Records that were read. */
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
            // Its reader may use the object for the next record as soon as it is asked for one.
            if (current != null) {
                if (texts.wants(pendingNanos)) {
                    slow = current;
                    isKept = true;
                }
                current = null;
            }
        }
        // Outside: this may run code of the user.
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
        // Its time may have come after the next one was asked for: where it is is known all the
        // same.
        if (isKept || texts.wants(pendingNanos)) {
            texts.keep(rows.count, pendingNanos, currentBegan, currentText);
            isKept = false;
            currentText = null;
        }
        if (rows.endRow()) {
            task.ignore();
        }
    }

    /** What the record read last looks like is not asked: the task's memory is gone. */
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
