package io.unfuse.spark.metrics;

import org.apache.spark.scheduler.SparkListenerEvent;

/**
 * A running query lost time to another query or to a process outside Spark. Spark's listener bus
 * gets it if the agent's option {@code contention} is set; {@code SparkListener.onOtherEvent}
 * receives it. It is not in Spark's event log.
 *
 * <p>All seconds are summed over the tasks of the query, in the last interval, or in the last ten
 * seconds.
 */
public final class ContentionEvent implements SparkListenerEvent {
    /** The SQL execution that lost time. */
    public final long query;

    /** Its name. */
    public final String victim;

    /** The query or process that caused most of it. */
    public final String culprit;

    /** Time that all others cost, s. */
    public final double lostSeconds;

    /** The same as a part of its tasks' time, 0 to 1. */
    public final double lostPart;

    /** Time that the culprit cost, s. */
    public final double culpritSeconds;

    /**
     * The range in which it lies, s: from 0.6 to 1.5 of what was shared out by use. The kernel
     * counted the rest ({@code switches=on}).
     */
    public final double culpritSecondsLow;

    public final double culpritSecondsHigh;

    public ContentionEvent(
            long query,
            String victim,
            String culprit,
            double lostSeconds,
            double lostPart,
            double culpritSeconds,
            double culpritSecondsLow,
            double culpritSecondsHigh) {
        this.query = query;
        this.victim = victim;
        this.culprit = culprit;
        this.lostSeconds = lostSeconds;
        this.lostPart = lostPart;
        this.culpritSeconds = culpritSeconds;
        this.culpritSecondsLow = culpritSecondsLow;
        this.culpritSecondsHigh = culpritSecondsHigh;
    }

    /** False: a History Server without this class could not read it. */
    @Override
    public boolean logEvent() {
        return false;
    }

    @Override
    public String toString() {
        return String.format(
                java.util.Locale.ROOT,
                "%s lost %.1f s of its tasks' time (%.0f%%) to others, of these %.1f s (%.1f to %.1f) to %s",
                victim,
                lostSeconds,
                100 * lostPart,
                culpritSeconds,
                culpritSecondsLow,
                culpritSecondsHigh,
                culprit);
    }
}
