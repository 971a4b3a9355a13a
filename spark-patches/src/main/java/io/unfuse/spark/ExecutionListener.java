package io.unfuse.spark;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
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

/** Turns what Spark's listener bus says about the application, its queries, jobs, stages and tasks into events for the profile. */
final class ExecutionListener extends SparkListener {
    /** A query that has started and not ended. */
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

    ExecutionListener(SparkContext spark) {
        jobs = new JobEvents(spark);
        stages = new StageEvents(spark, cache);
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
        try {
            if (event instanceof SparkListenerSQLExecutionStart) {
                SparkListenerSQLExecutionStart start = (SparkListenerSQLExecutionStart) event;
                running.put(start.executionId(), new Execution(start.description()));
                plan(start.executionId(), start.time(), start.sparkPlanInfo());
            } else if (event instanceof SparkListenerSQLAdaptiveExecutionUpdate) {
                SparkListenerSQLAdaptiveExecutionUpdate update = (SparkListenerSQLAdaptiveExecutionUpdate) event;
                plan(update.executionId(), System.currentTimeMillis(), update.sparkPlanInfo());
            } else if (event instanceof SparkListenerSQLExecutionEnd) {
                SparkListenerSQLExecutionEnd end = (SparkListenerSQLExecutionEnd) event;
                running.remove(end.executionId());
                Object error = end.errorMessage().isDefined() ? end.errorMessage().get() : null;
                Agent.event(new Json()
                        .field("type", "execution_end")
                        .field("execution", end.executionId())
                        .field("time", end.time())
                        // Spark says "no error" with an empty message.
                        .field("error", error == null || error.toString().isEmpty() ? null : error.toString()));
            }
        } catch (Throwable error) {
            Agent.failed("reporting a query", error);
        }
    }

    private void plan(long execution, long time, SparkPlanInfo plan) throws ReflectiveOperationException {
        // An update of a query whose start we missed still has a plan worth keeping.
        Execution query = running.computeIfAbsent(execution, id -> new Execution(null));
        Json json = new Json(8192)
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
        try {
            Agent.event(jobs.started(event));
        } catch (Throwable error) {
            Agent.failed("reporting the application's start", error);
        }
    }

    @Override
    public void onExecutorAdded(SparkListenerExecutorAdded event) {
        try {
            Agent.event(jobs.added(event));
        } catch (Throwable error) {
            Agent.failed("reporting an executor of the application", error);
        }
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved event) {
        try {
            Agent.event(jobs.removed(event));
        } catch (Throwable error) {
            Agent.failed("reporting an executor of the application", error);
        }
    }

    @Override
    public void onJobStart(SparkListenerJobStart event) {
        try {
            stages.started(event);
            Agent.event(jobs.started(event));
        } catch (Throwable error) {
            Agent.failed("reporting a job", error);
        }
    }

    @Override
    public void onJobEnd(SparkListenerJobEnd event) {
        try {
            Agent.event(jobs.ended(event));
        } catch (Throwable error) {
            Agent.failed("reporting a job", error);
        }
    }

    @Override
    public void onStageSubmitted(SparkListenerStageSubmitted event) {
        try {
            Agent.event(stages.submitted(event));
        } catch (Throwable error) {
            Agent.failed("reporting a stage", error);
        }
    }

    @Override
    public void onStageCompleted(SparkListenerStageCompleted event) {
        try {
            Agent.event(stages.completed(event));
        } catch (Throwable error) {
            Agent.failed("reporting a stage", error);
        }
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd event) {
        try {
            Agent.event(StageEvents.task(event));
        } catch (Throwable error) {
            Agent.failed("reporting a task", error);
        }
    }

    @Override
    public void onBlockUpdated(SparkListenerBlockUpdated event) {
        try {
            Json cached = cache.updated(event);
            if (cached != null) {
                Agent.event(cached);
            }
        } catch (Throwable error) {
            Agent.failed("reporting the cache", error);
        }
    }

    @Override
    public void onUnpersistRDD(SparkListenerUnpersistRDD event) {
        try {
            cache.unpersisted(event.rddId());
        } catch (Throwable error) {
            Agent.failed("reporting the cache", error);
        }
    }

    @Override
    public void onBlockManagerRemoved(SparkListenerBlockManagerRemoved event) {
        try {
            cache.removed(event.blockManagerId().executorId());
        } catch (Throwable error) {
            Agent.failed("reporting the cache", error);
        }
    }

    @Override
    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        try {
            cache.ended();
        } catch (Throwable error) {
            Agent.failed("reporting the cache", error);
        }
        try {
            Agent.event(jobs.ended(event));
        } catch (Throwable error) {
            Agent.failed("reporting the application's end", error);
        }
        Agent.flush(UnfusePlugin.FLUSH_MILLIS);
    }
}
