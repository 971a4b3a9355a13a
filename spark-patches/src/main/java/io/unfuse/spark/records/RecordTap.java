package io.unfuse.spark.records;

import io.unfuse.spark.common.Agent;

import org.apache.spark.Partition;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;

import scala.collection.Iterator;

import java.io.File;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where {@code RecordPatch} leads: follows records through tasks, so that it is known which inputs
 * an output of a stage came from and how long the code in between took for each. Only where the
 * agent was told {@code records=…}.
 *
 * <p>Nothing here throws into Spark. A task whose bookkeeping fails runs on without.
 */
public final class RecordTap {
    private RecordTap() {}

    /** Set by the agent: where files wait for the writer. */
    static final String PROPERTY = "unfuse.records";

    /** Set by the agent unless contents may be kept. */
    static final String REDACT_PROPERTY = "unfuse.records.redact";

    private static final Map<Long, RecordTask> TASKS = new ConcurrentHashMap<>();
    private static final ThreadLocal<RecordTask> CURRENT = new ThreadLocal<>();

    /** Whether the agent was told to follow records. */
    public static boolean isOn() {
        return System.getProperty(PROPERTY) != null;
    }

    /**
     * Files are read row by row unless the user says otherwise: what is read in batches is followed
     * by batch.
     */
    public static void readRows(SparkConf conf) {
        conf.setIfMissing("spark.sql.parquet.enableVectorizedReader", "false");
        conf.setIfMissing("spark.sql.orc.enableVectorizedReader", "false");
    }

    /** Called on the task's thread before the task. */
    public static void taskStarted(TaskContext context) {
        String dir = System.getProperty(PROPERTY);
        if (dir == null) {
            return;
        }
        try {
            RecordTask task =
                    new RecordTask(
                            context, new File(dir), System.getProperty(REDACT_PROPERTY) != null);
            TASKS.put(context.taskAttemptId(), task);
            CURRENT.set(task);
        } catch (Throwable error) {
            Agent.failed("following a task's records", error);
        }
    }

    /** Called on the task's thread when the task has ended. */
    public static void taskEnded(boolean succeeded) {
        RecordTask task = CURRENT.get();
        if (task == null) {
            return;
        }
        CURRENT.remove();
        TASKS.remove(task.id);
        try {
            task.finish(succeeded);
        } catch (Throwable error) {
            task.fail(error);
        }
    }

    /** {@code RDD.iterator} begins. */
    public static void beginSource(Object context) {
        follow(
                task(context),
                null,
                task -> {
                    task.begin();
                    return null;
                });
    }

    /** {@code RDD.iterator} has its result: that of a source or a cached RDD is followed. */
    public static Object endSource(Object iterator, Object rdd, Object partition, Object context) {
        return follow(
                task(context),
                iterator,
                task -> task.source((Iterator<?>) iterator, (RDD<?>) rdd, index(partition)));
    }

    /** An RDD that may have to be cached begins to be computed. */
    public static void beginCached(Object context) {
        follow(
                task(context),
                null,
                task -> {
                    task.nest();
                    return null;
                });
    }

    /** What a cached RDD computed, on its way into the cache. */
    public static Object endCached(Object iterator, Object rdd, Object partition, Object context) {
        return follow(
                task(context),
                iterator,
                task -> task.cached((Iterator<?>) iterator, (RDD<?>) rdd, index(partition)));
    }

    /** What a task hands to the action. */
    public static Object result(Object iterator) {
        return follow(CURRENT.get(), iterator, task -> task.output((Iterator<?>) iterator, null));
    }

    /** What a task hands to a shuffle. */
    public static Object shuffle(Object iterator, Object dependency) {
        return follow(
                CURRENT.get(), iterator, task -> task.output((Iterator<?>) iterator, dependency));
    }

    /** What an aggregator is about to merge by key. */
    public static Object merged(Object iterator) {
        return follow(
                CURRENT.get(), iterator, task -> new RecordMerge(task, (Iterator<?>) iterator));
    }

    private interface Step {
        Object take(RecordTask task) throws ReflectiveOperationException;
    }

    /**
     * What a step makes of a task that is followed; {@code otherwise} where there is none, or it
     * fails.
     */
    private static Object follow(RecordTask task, Object otherwise, Step step) {
        if (task == null || task.isBroken()) {
            return otherwise;
        }
        try {
            return step.take(task);
        } catch (Throwable error) {
            task.fail(error);
            return otherwise;
        }
    }

    private static int index(Object partition) {
        return ((Partition) partition).index();
    }

    private static RecordTask task(Object context) {
        return context instanceof TaskContext
                ? TASKS.get(((TaskContext) context).taskAttemptId())
                : null;
    }
}
