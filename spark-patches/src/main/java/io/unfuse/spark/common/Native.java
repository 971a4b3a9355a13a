package io.unfuse.spark.common;

/**
 * The functions that the agent library exports to Java. HotSpot finds them in the agent, so nothing
 * is loaded here; without the agent every call throws {@link UnsatisfiedLinkError}. All other code
 * uses {@link Agent}, which then does nothing.
 */
final class Native {
    private Native() {}

    /** Marks the calling thread as running a task of a SQL execution; -1 outside of one. */
    static native void taskStart(int stage, int stageAttempt, long taskAttemptId, long execution);

    /** Marks the calling thread as idle. */
    static native void taskEnd();

    /** What is recorded now: 0 for everything, 1 without samples, 2 for nothing. */
    static native int recording();

    /** A number about the profiler, by its place in the agent's list. */
    static native long metric(int place);

    /**
     * Queues one JSON object in UTF-8 without blocking; false if the queue was full and the event
     * is lost.
     */
    static native boolean event(byte[] utf8Json);

    /** Waits at most {@code millis} ms until the writer has the queued events. */
    static native void flush(int millis);

    /**
     * Makes the profiler write all samples so far to files, and waits for it at most {@code millis}
     * ms. {@code last} if the JVM ends now.
     */
    static native boolean deliver(int millis, boolean last);

    /** Writes one line to stderr, prefixed with {@code unfuse:}. */
    static native void log(String line);
}
