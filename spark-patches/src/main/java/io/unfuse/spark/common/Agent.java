package io.unfuse.spark.common;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The connection from Spark's threads to the agent. No method throws: the profiled job must not
 * notice a missing or failing agent.
 */
public final class Agent {
    private Agent() {}

    /** How long Spark may wait for us when it stops, ms. */
    public static final int FLUSH_MILLIS = 2000;

    /** The agent's functions; {@link Native} in production, a recorder in tests. */
    interface Link {
        void taskStart(int stage, int stageAttempt, long taskAttemptId, long execution);

        void taskEnd();

        default int recording() {
            return 0;
        }

        default long metric(int place) {
            return 0;
        }

        boolean event(byte[] utf8Json);

        void flush(int millis);

        boolean deliver(int millis, boolean last);

        void log(String line);
    }

    static final Link NATIVE =
            new Link() {
                @Override
                public void taskStart(
                        int stage, int stageAttempt, long taskAttemptId, long execution) {
                    Native.taskStart(stage, stageAttempt, taskAttemptId, execution);
                }

                @Override
                public void taskEnd() {
                    Native.taskEnd();
                }

                @Override
                public int recording() {
                    return Native.recording();
                }

                @Override
                public long metric(int place) {
                    return Native.metric(place);
                }

                @Override
                public boolean event(byte[] utf8Json) {
                    return Native.event(utf8Json);
                }

                @Override
                public void flush(int millis) {
                    Native.flush(millis);
                }

                @Override
                public boolean deliver(int millis, boolean last) {
                    return Native.deliver(millis, last);
                }

                @Override
                public void log(String line) {
                    Native.log(line);
                }
            };

    /** Null after the agent was found to be missing. */
    private static volatile Link link = NATIVE;

    private static final Set<String> reported = ConcurrentHashMap.newKeySet();

    /** Replaces the agent, for tests. */
    static void use(Link other) {
        link = other;
    }

    /**
     * Marks the calling thread as running a task; {@code execution} is -1 outside of SQL
     * executions.
     */
    public static void taskStart(int stage, int stageAttempt, long taskAttemptId, long execution) {
        Link agent = link;
        if (agent == null) {
            return;
        }
        try {
            agent.taskStart(stage, stageAttempt, taskAttemptId, execution);
        } catch (Throwable error) {
            gone(error);
        }
    }

    public static void taskEnd() {
        Link agent = link;
        if (agent == null) {
            return;
        }
        try {
            agent.taskEnd();
        } catch (Throwable error) {
            gone(error);
        }
    }

    /** Whether the use of resources is recorded now; {@code unfuse pause} stops that. */
    public static boolean metersResources() {
        return recording() < 1;
    }

    /** Whether plans, stages and tasks are recorded now; {@code unfuse pause --all} stops that. */
    public static boolean recordsEvents() {
        return recording() < 2;
    }

    private static int recording() {
        Link agent = link;
        if (agent == null) {
            return 0;
        }
        try {
            return agent.recording();
        } catch (Throwable error) {
            gone(error);
            return 0;
        }
    }

    /** A number about the profiler, see {@code ProfilerMetric}; 0 without an agent. */
    public static long metric(int place) {
        Link agent = link;
        if (agent == null) {
            return 0;
        }
        try {
            return agent.metric(place);
        } catch (Throwable error) {
            gone(error);
            return 0;
        }
    }

    /** Sends one finished JSON object; false if it was lost. */
    public static boolean event(Json json) {
        Link agent = link;
        if (agent == null) {
            return false;
        }
        try {
            return agent.event(json.utf8());
        } catch (Throwable error) {
            gone(error);
            return false;
        }
    }

    /** Waits at most {@code millis} ms until the writer has all events sent so far. */
    public static void flush(int millis) {
        Link agent = link;
        if (agent == null) {
            return;
        }
        try {
            agent.flush(millis);
        } catch (Throwable error) {
            gone(error);
        }
    }

    /**
     * Makes the profiler write everything sampled and reported so far to files; {@code last} if the
     * JVM ends now. False if this was not confirmed in time.
     */
    public static boolean deliver(int millis, boolean last) {
        Link agent = link;
        if (agent == null) {
            return false;
        }
        try {
            return agent.deliver(millis, last);
        } catch (Throwable error) {
            gone(error);
            return false;
        }
    }

    /** Reports a failure of ours once per place: one line, and the job continues. */
    public static void failed(String where, Throwable error) {
        if (reported.add(where)) {
            log(where + " failed; the profile lacks this part: " + error);
        }
    }

    /** The same for code that only displays the profile. */
    public static void failedWithoutLoss(String where, Throwable error) {
        if (reported.add(where)) {
            log(where + " failed: " + error);
        }
    }

    /** Writes one line to stderr. */
    public static void log(String line) {
        Link agent = link;
        if (agent == null) {
            return;
        }
        try {
            agent.log(line);
        } catch (Throwable error) {
            gone(error);
        }
    }

    private static void gone(Throwable error) {
        if (error instanceof UnsatisfiedLinkError) {
            link = null;
        }
    }
}
