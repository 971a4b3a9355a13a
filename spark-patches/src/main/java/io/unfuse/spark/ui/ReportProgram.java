package io.unfuse.spark.ui;

import io.unfuse.spark.common.UnfuseProgram;
import io.unfuse.spark.common.UnfuseProgram.Failure;

import java.lang.ref.SoftReference;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Runs {@code unfuse report}. At most one runs at a time, and a result is kept for some seconds.
 */
final class ReportProgram {
    /** Set by the agent, except with {@code ui=off}. */
    private static final String TAB = "unfuse.tab";

    private static final int MAX_BYTES = 48 << 20;
    private static final int LIMIT_MILLIS = 60_000;

    /**
     * A request that waits for another one's report occupies one of the web server's few threads.
     */
    private static final int MOST_WAITING_MILLIS = 15_000;

    private static final long KEPT_NANOS = 5_000_000_000L;

    private static ReportProgram configured;

    private final UnfuseProgram program;
    private final int maxBytes;
    private final int limitMillis;

    private final ReentrantLock running = new ReentrantLock();
    private String keptApp;
    private SoftReference<String> kept = new SoftReference<>(null);
    private long keptAt;

    ReportProgram(UnfuseProgram program, int maxBytes, int limitMillis) {
        this.program = program;
        this.maxBytes = maxBytes;
        this.limitMillis = limitMillis;
    }

    /** The instance of this JVM; null if the agent did not request the tab. */
    static synchronized ReportProgram configured() {
        UnfuseProgram program = UnfuseProgram.configured();
        if (configured == null && program != null && System.getProperty(TAB) != null) {
            configured = new ReportProgram(program, MAX_BYTES, LIMIT_MILLIS);
        }
        return configured;
    }

    String dir() {
        return program.dir();
    }

    /** What to do about the missing program; null if it exists. */
    String missing() {
        return program.exists()
                ? null
                : "Put the unfuse program at "
                        + program.path()
                        + " (beside libunfuse.so) to see the profile here, or run "
                        + "unfuse report on "
                        + dir()
                        + " elsewhere.";
    }

    /** The report of an application, as one HTML page. */
    String report(String app) throws Failure {
        String missing = missing();
        if (missing != null) {
            throw new Failure(missing);
        }
        try {
            if (!running.tryLock(
                    Math.min(limitMillis, MOST_WAITING_MILLIS), TimeUnit.MILLISECONDS)) {
                throw new Failure("Another report is still being made; try again in a minute.");
            }
            try {
                String page = kept.get();
                if (page == null
                        || !app.equals(keptApp)
                        || System.nanoTime() - keptAt > KEPT_NANOS) {
                    kept.clear();
                    page = run(app);
                    kept = new SoftReference<>(page);
                    keptApp = app;
                    keptAt = System.nanoTime();
                }
                return page;
            } finally {
                running.unlock();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new Failure("The report was interrupted.");
        }
    }

    private String run(String app) throws InterruptedException, Failure {
        String byHand = "unfuse report " + dir() + " --app " + app;
        return program.output(
                "The report", byHand, maxBytes, limitMillis, "report", "--app=" + app, "-o", "-");
    }
}
