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
 * Called from the code of {@code RecordPatch}: traces records through tasks, to find the inputs of
 * each output of a stage and the time of the code between them. Only with the agent's option {@code
 * records=…}.
 *
 * <p>It never throws into Spark. If tracing fails, the task continues without it.
 */
public final class RecordTap {
    private RecordTap() {}

    /** The folder in which files wait for the writer; set by the agent. */
    static final String PROPERTY = "unfuse.records";

    /** Set by the agent if contents must not be kept. */
    static final String REDACT_PROPERTY = "unfuse.records.redact";

    private static final Map<Long, RecordTask> TASKS = new ConcurrentHashMap<>();
    private static final ThreadLocal<RecordTask> CURRENT = new ThreadLocal<>();

    /** Whether the agent was told to trace records. */
    public static boolean isOn() {
        return System.getProperty(PROPERTY) != null;
    }

    /**
     * Files are read row by row unless the user's settings say otherwise: batches are traced as a
     * whole.
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

    /** Called on the task's thread at the end of the task. */
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

    /** {@code RDD.iterator} has its result: that of a source or a cached RDD is traced. */
    public static Object endSource(Object iterator, Object rdd, Object partition, Object context) {
        return follow(
                task(context),
                iterator,
                task -> task.source((Iterator<?>) iterator, (RDD<?>) rdd, index(partition)));
    }

    /** The computation of an RDD that may have to be cached begins. */
    public static void beginCached(Object context) {
        follow(
                task(context),
                null,
                task -> {
                    task.nest();
                    return null;
                });
    }

    /** The computed records of a cached RDD, before they are stored. */
    public static Object endCached(Object iterator, Object rdd, Object partition, Object context) {
        return follow(
                task(context),
                iterator,
                task -> task.cached((Iterator<?>) iterator, (RDD<?>) rdd, index(partition)));
    }

    /** The records that a task passes to the action. */
    public static Object result(Object iterator) {
        return follow(CURRENT.get(), iterator, task -> task.output((Iterator<?>) iterator, null));
    }

    /** The records that a task passes to a shuffle. */
    public static Object shuffle(Object iterator, Object dependency) {
        return follow(
                CURRENT.get(), iterator, task -> task.output((Iterator<?>) iterator, dependency));
    }

    /** The records that an aggregator is about to merge by key. */
    public static Object merged(Object iterator) {
        return follow(
                CURRENT.get(), iterator, task -> new RecordMerge(task, (Iterator<?>) iterator));
    }

    private interface Step {
        Object take(RecordTask task) throws ReflectiveOperationException;
    }

    /** The result of a step for a traced task; {@code otherwise} if there is none, or it fails. */
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
