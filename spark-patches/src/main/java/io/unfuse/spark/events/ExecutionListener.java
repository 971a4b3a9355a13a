package io.unfuse.spark.events;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerApplicationStart;
import org.apache.spark.scheduler.SparkListenerBlockManagerRemoved;
import org.apache.spark.scheduler.SparkListenerBlockUpdated;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerUnpersistRDD;
import org.apache.spark.sql.execution.SparkPlanInfo;
import org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Converts the events of Spark's listener bus on the application, its queries, jobs, stages and
 * tasks to events for the profile.
 */
public final class ExecutionListener extends SparkListener {
    /** A running query. */
    private static final class Execution {
        final String description;
        int version;

        Execution(String description) {
            this.description = description;
        }
    }

    private final Map<Long, Execution> running = new ConcurrentHashMap<>();
    private final CacheEvents cache = new CacheEvents();
    private final StageEvents stages;
    private final JobEvents jobs;

    /** For the listener bus of this application. */
    public ExecutionListener(SparkContext spark) {
        jobs = new JobEvents(spark);
        stages = new StageEvents(spark, cache);
    }

    private interface Step {
        void take() throws ReflectiveOperationException;
    }

    /** Keeps our exceptions out of Spark's listener bus. */
    private static void report(String what, Step step) {
        if (!Agent.recordsEvents()) {
            return;
        }
        try {
            step.take();
        } catch (Throwable error) {
            Agent.failed("reporting " + what, error);
        }
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        report(
                "a query",
                () -> {
                    if (event instanceof SparkListenerSQLExecutionStart) {
                        SparkListenerSQLExecutionStart start =
                                (SparkListenerSQLExecutionStart) event;
                        running.put(start.executionId(), new Execution(start.description()));
                        plan(start.executionId(), start.time(), start.sparkPlanInfo());
                    } else if (event instanceof SparkListenerSQLAdaptiveExecutionUpdate) {
                        SparkListenerSQLAdaptiveExecutionUpdate update =
                                (SparkListenerSQLAdaptiveExecutionUpdate) event;
                        plan(
                                update.executionId(),
                                System.currentTimeMillis(),
                                update.sparkPlanInfo());
                    } else if (event instanceof SparkListenerSQLExecutionEnd) {
                        SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
                        running.remove(end.executionId());
                        String error = errorOf(end);
                        Agent.event(
                                new Json()
                                        .field("type", "execution_end")
                                        .field("execution", end.executionId())
                                        .field("time", end.time())
                                        .field("error", error));
                    }
                });
    }

    /** The message of a query that failed; Spark writes an empty one for success. */
    private static String errorOf(SparkListenerSQLExecutionEnd end) {
        try {
            Object error = end.errorMessage().isDefined() ? end.errorMessage().get() : null;
            return error == null || error.toString().isEmpty() ? null : error.toString();
        } catch (NoSuchMethodError spark33) {
            // Spark 3.3 does not say why a query failed.
            return null;
        }
    }

    private void plan(long execution, long time, SparkPlanInfo plan)
            throws ReflectiveOperationException {
        // An update of a query without a known start still has a useful plan.
        Execution query = running.computeIfAbsent(execution, id -> new Execution(null));
        Json json =
                new Json(8192)
                        .field("type", "plan")
                        .field("execution", execution)
                        .field("version", query.version++)
                        .field("description", query.description)
                        .field("time", time);
        PlanTree.write(json, plan);
        Agent.event(json);
    }

    @Override
    public void onApplicationStart(SparkListenerApplicationStart event) {
        report("the application's start", () -> Agent.event(jobs.started(event)));
    }

    @Override
    public void onExecutorAdded(SparkListenerExecutorAdded event) {
        report("an executor of the application", () -> Agent.event(jobs.added(event)));
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
        report("an executor of the application", () -> Agent.event(jobs.removed(event)));
    }

    @Override
    public void onJobStart(SparkListenerJobStart event) {
        report(
                "a job",
                () -> {
                    stages.started(event);
                    Agent.event(jobs.started(event));
                });
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd event) {
        report("a job", () -> Agent.event(jobs.ended(event)));
    }

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        report("a stage", () -> Agent.event(stages.submitted(event)));
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted event) {
        report("a stage", () -> Agent.event(stages.completed(event)));
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd event) {
        report("a task", () -> Agent.event(StageEvents.task(event)));
    }

    @Override
    public void onBlockUpdated(SparkListenerBlockUpdated event) {
        report(
                "the cache",
                () -> {
                    Json cached = cache.updated(event);
                    if (cached != null) {
                        Agent.event(cached);
                    }
                });
    }

    @Override
    public void onUnpersistRDD(SparkListenerUnpersistRDD event) {
        report("the cache", () -> cache.unpersisted(event.rddId()));
    }

    @Override
    public void onBlockManagerRemoved(SparkListenerBlockManagerRemoved event) {
        report("the cache", () -> cache.removed(event.blockManagerId().executorId()));
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        report("the cache", () -> cache.ended());
        report("the application's end", () -> Agent.event(jobs.ended(event)));
        Agent.flush(Agent.FLUSH_MILLIS);
    }
}
