package io.unfuse.spark;

import java.io.File;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import scala.collection.Iterator;

/**
 * Where {@link RecordPatch} leads: follows records through tasks, so that it is known which inputs an output of a stage came from and
 * how long the code in between took for each. Only where the agent was told {@code records=…}.
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

    static boolean isOn() {
        return System.getProperty(PROPERTY) != null;
    }

    /** Files are read row by row unless the user says otherwise: what is read in batches is followed by batch. */
    static void readRows(SparkConf conf) {
        conf.setIfMissing("spark.sql.parquet.enableVectorizedReader", "false");
        conf.setIfMissing("spark.sql.orc.enableVectorizedReader", "false");
    }

    static void taskStarted(TaskContext context) {
        String dir = System.getProperty(PROPERTY);
        if (dir == null) {
            return;
        }
        try {
            RecordTask task = new RecordTask(context, new File(dir), System.getProperty(REDACT_PROPERTY) != null);
            TASKS.put(context.taskAttemptId(), task);
            CURRENT.set(task);
        } catch (Throwable error) {
            Agent.failed("following a task's records", error);
        }
    }

    static void taskEnded(boolean succeeded) {
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
    public static void beginSource(Object rdd, Object context) {
        RecordTask task = task(context);
        if (task != null) {
            try {
                task.begin();
            } catch (Throwable error) {
                task.fail(error);
            }
        }
    }

    /** {@code RDD.iterator} has its result: that of a source or a cached RDD is followed. */
    public static Object endSource(Object iterator, Object rdd, Object partition, Object context) {
        RecordTask task = task(context);
        if (task == null) {
            return iterator;
        }
        try {
            return task.source((Iterator<?>) iterator, (RDD<?>) rdd, ((org.apache.spark.Partition) partition).index());
        } catch (Throwable error) {
            task.fail(error);
            return iterator;
        }
    }

    /** An RDD that may have to be cached begins to be computed. */
    public static void beginCached(Object rdd, Object context) {
        RecordTask task = task(context);
        if (task != null) {
            try {
                task.nest();
            } catch (Throwable error) {
                task.fail(error);
            }
        }
    }

    /** What a cached RDD computed, on its way into the cache. */
    public static Object endCached(Object iterator, Object rdd, Object partition, Object context) {
        RecordTask task = task(context);
        if (task == null) {
            return iterator;
        }
        try {
            return task.cached((Iterator<?>) iterator, (RDD<?>) rdd, ((org.apache.spark.Partition) partition).index());
        } catch (Throwable error) {
            task.fail(error);
            return iterator;
        }
    }

    /** What a task hands to the action. */
    public static Object result(Object iterator) {
        return output(iterator, null);
    }

    /** What a task hands to a shuffle. */
    public static Object shuffle(Object iterator, Object dependency) {
        return output(iterator, dependency);
    }

    private static Object output(Object iterator, Object dependency) {
        RecordTask task = CURRENT.get();
        if (task == null || task.isBroken()) {
            return iterator;
        }
        try {
            return task.output((Iterator<?>) iterator, dependency);
        } catch (Throwable error) {
            task.fail(error);
            return iterator;
        }
    }

    /** What an aggregator is about to merge by key. */
    public static Object merged(Object iterator) {
        RecordTask task = CURRENT.get();
        if (task == null || task.isBroken()) {
            return iterator;
        }
        return new RecordMerge(task, (Iterator<?>) iterator);
    }

    private static RecordTask task(Object context) {
        RecordTask task = context instanceof TaskContext ? TASKS.get(((TaskContext) context).taskAttemptId()) : null;
        return task == null || task.isBroken() ? null : task;
    }
}
