package io.unfuse.spark.metrics;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.UnfuseProgram;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListenerEvent;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * What others cost the running queries of this driver: again and again the answer of {@code unfuse
 * blame}, which runs as a child process, about the last interval, or about the last ten seconds.
 */
public final class ContentionMonitor {
    /** Set by the agent if its option {@code contention} is. */
    private static final String MILLIS = "unfuse.contention.millis";

    /** A smaller part of its tasks' time that a query lost makes no event. */
    private static final double LEAST_PART = 0.1;

    private static final int MAX_BYTES = 1 << 20;
    private static final int LIMIT_MILLIS = 60_000;

    /** Time that an answer is about, at least: the profile of a running JVM is some seconds old. */
    private static final long LEAST_WINDOW_MILLIS = 10_000;

    /** At most this part of the time is spent on answers, which take longer in a large profile. */
    private static final int PAUSE_FACTOR = 4;

    /**
     * The profile of an application that has just started has no answer, and that is no failure.
     */
    private static final int MOST_FAILURES = 3;

    private static final ContentionEvent NONE = new ContentionEvent(-1, "", "", 0, 0, 0, 0, 0);

    private final ObjectMapper mapper = new ObjectMapper();
    private final UnfuseProgram program;
    private final String app;
    private final Consumer<SparkListenerEvent> listeners;
    private final long everyMillis;

    private volatile ContentionEvent worst = NONE;
    private volatile boolean stopped;

    ContentionMonitor(
            UnfuseProgram program,
            String app,
            long everyMillis,
            Consumer<SparkListenerEvent> listeners) {
        this.program = program;
        this.app = app;
        this.everyMillis = everyMillis;
        this.listeners = listeners;
    }

    /** Starts it for an application; null if that was not asked for, or is not possible. */
    public static ContentionMonitor start(SparkContext spark, String app) {
        try {
            Long every = Long.getLong(MILLIS);
            UnfuseProgram program = UnfuseProgram.configured();
            if (every == null || program == null) {
                return null;
            }
            ContentionMonitor monitor =
                    new ContentionMonitor(
                            program, app, every, event -> spark.listenerBus().post(event));
            if (!program.exists()) {
                Agent.log("contention=… has no effect: there is no program " + program.path());
                return null;
            }
            Thread thread = new Thread(() -> monitor.run(() -> isBusy(spark)), "unfuse-contention");
            thread.setDaemon(true);
            thread.start();
            return monitor;
        } catch (Throwable error) {
            Agent.failedWithoutLoss("starting to watch contention", error);
            return null;
        }
    }

    private static boolean isBusy(SparkContext spark) {
        return spark.statusTracker().getActiveJobIds().length > 0;
    }

    /** Ends it. */
    public void stop() {
        stopped = true;
    }

    /** The running query that lost most in the last interval; its number is -1 if there is none. */
    ContentionEvent worst() {
        return worst;
    }

    /** Whether Spark runs jobs now. */
    interface Busy {
        boolean isBusy();
    }

    private void run(Busy spark) {
        long pause = everyMillis;
        int failures = 0;
        while (!stopped) {
            try {
                Thread.sleep(pause);
                long start = System.nanoTime();
                if (!stopped) {
                    update(spark.isBusy());
                }
                long took = (System.nanoTime() - start) / 1_000_000;
                pause = Math.max(everyMillis, PAUSE_FACTOR * took);
                failures = 0;
            } catch (InterruptedException end) {
                return;
            } catch (Throwable error) {
                worst = NONE;
                failures++;
                if (failures == MOST_FAILURES) {
                    Agent.failedWithoutLoss("computing contention", error);
                }
            }
        }
    }

    /** Asks once, and posts the events. */
    void update(boolean isBusy) throws InterruptedException, IOException, UnfuseProgram.Failure {
        ContentionEvent most = NONE;
        for (ContentionEvent event : isBusy ? ask() : new ArrayList<ContentionEvent>()) {
            if (event.lostSeconds > most.lostSeconds) {
                most = event;
            }
            if (event.lostPart >= LEAST_PART) {
                listeners.accept(event);
            }
        }
        worst = most;
    }

    private List<ContentionEvent> ask()
            throws InterruptedException, IOException, UnfuseProgram.Failure {
        String lines =
                program.output(
                        "The answer about contention",
                        "unfuse blame " + program.dir(),
                        MAX_BYTES,
                        LIMIT_MILLIS,
                        "blame",
                        "--json",
                        "--alert=0%",
                        "--since=" + Math.max(everyMillis, LEAST_WINDOW_MILLIS) + "ms");
        List<ContentionEvent> events = new ArrayList<>();
        for (String line : lines.split("\n")) {
            if (line.isEmpty()) {
                continue;
            }
            JsonNode alert = mapper.readTree(line);
            if (!app.equals(alert.path("application").asText())
                    || !alert.path("execution").isNumber()) {
                continue;
            }
            events.add(
                    new ContentionEvent(
                            alert.path("execution").asLong(),
                            alert.path("label").asText(),
                            alert.path("main_culprit").asText(),
                            alert.path("by_others_seconds").asDouble(),
                            alert.path("by_others").asDouble(),
                            alert.path("main_culprit_seconds").asDouble(),
                            alert.path("main_culprit_seconds_low").asDouble(),
                            alert.path("main_culprit_seconds_high").asDouble()));
        }
        return events;
    }
}
