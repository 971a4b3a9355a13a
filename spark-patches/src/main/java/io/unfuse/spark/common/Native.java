package io.unfuse.spark.common;

/**
 * The functions the agent library exports to Java. HotSpot finds them in the agent by itself, so
 * nothing is loaded here; without the agent every call throws {@link UnsatisfiedLinkError}.
 * Everything else goes through {@link Agent}, which turns that into doing nothing.
 */
final class Native {
    private Native() {}

    /** Marks the calling thread as running a task from now on. */
    static native void taskStart(int stage, int stageAttempt, long taskAttemptId);

    /** Marks the calling thread as free again. */
    static native void taskEnd();

    /** What is recorded now: 0 for everything, 1 without samples, 2 for nothing. */
    static native int recording();

    /**
     * Queues one JSON object in UTF-8 and never blocks; false if the queue was full and the event
     * is lost.
     */
    static native boolean event(byte[] utf8Json);

    /**
     * Waits at most {@code millis} milliseconds until the queued events have been handed to the
     * writer.
     */
    static native void flush(int millis);

    /**
     * Has everything that was sampled so far written to files, and waits for it at most {@code
     * millis} milliseconds. {@code last} says that the JVM ends now.
     */
    static native boolean deliver(int millis, boolean last);

    /** Writes one line to stderr, prefixed with {@code unfuse:}. */
    static native void log(String line);
}
