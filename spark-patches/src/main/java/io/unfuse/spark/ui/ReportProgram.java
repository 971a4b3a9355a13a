package io.unfuse.spark.ui;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.ref.SoftReference;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Runs {@code unfuse report} as a child process: this JVM does not analyse anything. At most one
 * runs at a time, with low priority and for a limited time, and a result is kept for some seconds.
 */
final class ReportProgram {
    /** Set by the agent, except with {@code ui=off}. */
    private static final String DIR = "unfuse.ui.dir";

    private static final String PROGRAM = "unfuse.ui.program";

    private static final int MAX_BYTES = 48 << 20;
    private static final int LIMIT_MILLIS = 60_000;

    /**
     * A request that waits for another one's report occupies one of the web server's few threads.
     */
    private static final int MOST_WAITING_MILLIS = 15_000;

    private static final long KEPT_NANOS = 5_000_000_000L;

    private static ReportProgram configured;

    private final String program;
    private final String dir;
    private final int maxBytes;
    private final int limitMillis;

    private final ReentrantLock running = new ReentrantLock();
    private String keptApp;
    private SoftReference<String> kept = new SoftReference<>(null);
    private long keptAt;

    ReportProgram(String program, String dir, int maxBytes, int limitMillis) {
        this.program = program;
        this.dir = dir;
        this.maxBytes = maxBytes;
        this.limitMillis = limitMillis;
    }

    /** The instance of this JVM; null if the agent did not request the tab. */
    static synchronized ReportProgram configured() {
        String program = System.getProperty(PROGRAM);
        String dir = System.getProperty(DIR);
        if (configured == null && program != null && dir != null) {
            configured = new ReportProgram(program, dir, MAX_BYTES, LIMIT_MILLIS);
        }
        return configured;
    }

    /** Why there is no report, in a sentence for the user. */
    static final class Failure extends Exception {
        Failure(String sentence) {
            super(sentence);
        }
    }

    String dir() {
        return dir;
    }

    /** What to do about the missing program; null if it exists. */
    String missing() {
        return new File(program).canExecute()
                ? null
                : "Put the unfuse program at "
                        + program
                        + " (beside libunfuse.so) to see the profile here, or run "
                        + "unfuse report on "
                        + dir
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
        } catch (IOException e) {
            throw new Failure(program + " cannot be run: " + e.getMessage());
        }
    }

    private String run(String app) throws IOException, InterruptedException, Failure {
        Process process =
                new ProcessBuilder(
                                List.of(
                                        "nice",
                                        "-n",
                                        "10",
                                        program,
                                        "report",
                                        dir,
                                        "--app=" + app,
                                        "-o",
                                        "-"))
                        .start();
        try {
            process.getOutputStream().close();
            Reader page = new Reader(process.getInputStream(), maxBytes, process);
            Reader complaints = new Reader(process.getErrorStream(), 8192, null);
            if (!process.waitFor(limitMillis, TimeUnit.MILLISECONDS)) {
                throw new Failure(
                        "The report takes more than "
                                + limitMillis / 1000
                                + " s; run "
                                + byHand(app));
            }
            page.join(limitMillis);
            complaints.join(1000);
            if (page.overflowed) {
                throw new Failure(
                        "The report is larger than "
                                + (maxBytes >> 20)
                                + " MiB; run "
                                + byHand(app));
            }
            if (process.exitValue() != 0) {
                String[] lines = complaints.text().strip().split("\n");
                String last = lines[lines.length - 1];
                throw new Failure(
                        last.isEmpty() ? "unfuse report failed; run " + byHand(app) : last);
            }
            return page.text();
        } finally {
            process.destroyForcibly();
        }
    }

    private String byHand(String app) {
        return "unfuse report " + dir + " --app " + app;
    }

    /**
     * Reads the output of a process, so that it never blocks; keeps a limited amount, and ends a
     * given process that exceeds it.
     */
    private static final class Reader extends Thread {
        private final InputStream in;
        private final int most;
        private final Process ended;
        private byte[] bytes = new byte[0];
        volatile boolean overflowed;

        Reader(InputStream in, int most, Process ended) {
            super("unfuse-report");
            this.in = in;
            this.most = most;
            this.ended = ended;
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            try {
                bytes = in.readNBytes(most);
                if (in.read() >= 0) {
                    overflowed = true;
                    if (ended != null) {
                        ended.destroyForcibly();
                    } else {
                        in.transferTo(java.io.OutputStream.nullOutputStream());
                    }
                }
            } catch (IOException endOfProcess) {
                // Keep what was read.
            }
        }

        String text() {
            return new String(bytes, StandardCharsets.UTF_8);
        }
    }
}
