package io.unfuse.spark.records;

import io.unfuse.spark.common.Json;

import java.nio.charset.StandardCharsets;
import java.util.Comparator;
import java.util.PriorityQueue;

/** The records with the longest times, with a limited part of their content if it may be kept. */
final class RecordTexts {
    private static final int MOST = 20;
    private static final int LONGEST = 300;

    /** Texts of this length have more characters than are kept. */
    private static final int BYTES = 4 * LONGEST + 4;

    private static final class Kept {
        final long position;
        final long nanos;
        final long began;
        final long ended;
        final String text;

        Kept(long position, long nanos, long began, String text) {
            this.position = position;
            this.nanos = nanos;
            this.began = began;
            ended = System.nanoTime();
            this.text = text;
        }
    }

    private final PriorityQueue<Kept> kept =
            new PriorityQueue<>(Comparator.comparingLong((Kept one) -> one.nanos));

    /** Whether a record with this time would be kept. */
    boolean wants(long nanos) {
        return kept.size() < MOST || nanos > kept.peek().nanos;
    }

    /** Keeps a record that is finished now; {@code began} is from {@link System#nanoTime()}. */
    void keep(long position, long nanos, long began, String text) {
        if (wants(nanos)) {
            kept.add(new Kept(position, nanos, began, text));
            if (kept.size() > MOST) {
                kept.poll();
            }
        }
    }

    void describe(Json json) {
        json.array("texts");
        for (Kept one : kept) {
            json.item()
                    .field("position", one.position)
                    .field("ns", one.nanos)
                    .field("began_ns", one.began)
                    .field("ended_ns", one.ended)
                    .field("cut", one.text != null && one.text.length() > LONGEST)
                    .field(
                            "text",
                            one.text != null && one.text.length() > LONGEST
                                    ? one.text.substring(0, LONGEST)
                                    : one.text)
                    .end();
        }
        json.endArray();
    }

    /** A record as text for users; only called for few records. */
    static String of(Object record, Object schema, boolean keyed) {
        try {
            if (record instanceof scala.Tuple2) {
                scala.Tuple2<?, ?> pair = (scala.Tuple2<?, ?>) record;
                // The values of a key contain everything that was grouped under it.
                return keyed
                        ? "key " + of(pair._1(), null, false)
                        : isWritable(pair._1())
                                ? of(pair._2(), null, false)
                                : "("
                                        + of(pair._1(), null, false)
                                        + ","
                                        + of(pair._2(), null, false)
                                        + ")";
            }
            if (record instanceof org.apache.hadoop.io.Text) {
                org.apache.hadoop.io.Text text = (org.apache.hadoop.io.Text) record;
                // Not the whole of a line that may be as large as memory; half a character at its
                // end is cut off with the rest.
                return text.getLength() <= BYTES
                        ? text.toString()
                        : new String(text.getBytes(), 0, BYTES, StandardCharsets.UTF_8);
            }
            if (record instanceof byte[]) {
                return ((byte[]) record).length + " bytes";
            }
            if (record instanceof CharSequence) {
                CharSequence text = (CharSequence) record;
                return text.length() > LONGEST
                        ? text.subSequence(0, LONGEST + 1).toString()
                        : text.toString();
            }
            if (record instanceof scala.collection.Iterable
                    || record instanceof java.util.Collection
                    || record instanceof Object[]) {
                // Otherwise everything in it would be written, of any size.
                return "a " + record.getClass().getSimpleName();
            }
            String row = isSql(record) ? RecordRows.text(record, schema, LONGEST) : null;
            String text = row == null ? String.valueOf(record) : row;
            return text.length() > LONGEST ? text.substring(0, LONGEST + 1) : text;
        } catch (Throwable error) {
            return "(its toString failed: " + error.getClass().getName() + ")";
        }
    }

    private static boolean isSql(Object record) {
        return record != null && record.getClass().getName().startsWith("org.apache.spark.sql.");
    }

    private static boolean isWritable(Object key) {
        return key instanceof org.apache.hadoop.io.Writable;
    }
}
