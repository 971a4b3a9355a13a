package io.unfuse.spark.events;

import io.unfuse.spark.common.Json;
import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.SparkContext;
import org.apache.spark.executor.TaskMetrics;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.Schedulable;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.StageInfo;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.storage.RDDInfo;

import scala.Option;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Writes the {@code stage} and {@code task} events. */
final class StageEvents {
    private static final Method RDDS =
            ScalaSeq.method("org.apache.spark.scheduler.StageInfo", "rddInfos");

    /**
     * Maximum number of reported RDDs of a stage: lineages of iterative jobs grow with each
     * iteration.
     */
    private static final int MOST_RDDS = 100;

    private static final String CONNECT_USER = "SparkConnect_OperationTag_User_";
    private static final Method ACCUMULABLES =
            ScalaSeq.method("org.apache.spark.scheduler.StageInfo", "accumulables");

    private final SparkContext spark;
    private final CacheEvents cache;
    private final StageParents parents = new StageParents();

    /** Data of a running stage attempt that Spark only reports at submission. */
    private static final class Submitted {
        final Long execution;
        final String pool;

        Submitted(Long execution, String pool) {
            this.execution = execution;
            this.pool = pool;
        }
    }

    private final Map<String, Submitted> running = new ConcurrentHashMap<>();

    StageEvents(SparkContext spark, CacheEvents cache) {
        this.spark = spark;
        this.cache = cache;
    }

    void started(SparkListenerJobStart job) throws ReflectiveOperationException {
        parents.started(job);
    }

    Json submitted(SparkListenerStageSubmitted event) throws ReflectiveOperationException {
        StageInfo stage = event.stageInfo();
        Properties properties = event.properties() == null ? new Properties() : event.properties();
        String id = properties.getProperty("spark.sql.execution.id");
        Long execution = id == null ? null : Long.valueOf(id);
        String pool = properties.getProperty("spark.scheduler.pool", "");
        running.put(key(stage), new Submitted(execution, pool));
        parents.submitted(stage);
        for (Object each : ScalaSeq.get(stage, RDDS)) {
            RDDInfo rdd = (RDDInfo) each;
            if (rdd.storageLevel().useMemory()) {
                cache.computes(stage.stageId(), rdd.id());
            }
        }
        return stage(stage, execution)
                .field("pool", pool)
                .field("user", user(properties.getProperty("spark.job.tags", "")))
                .strings("rdds", rdds(stage))
                .strings("packages", packages(stage.details()))
                .numbers("parents", parents.of(stage));
    }

    Json completed(SparkListenerStageCompleted event) throws ReflectiveOperationException {
        StageInfo stage = event.stageInfo();
        Submitted submitted = running.remove(key(stage));
        Json json = stage(stage, submitted == null ? null : submitted.execution);
        // A pool is created when its first tasks are submitted, after the stage.
        return submitted == null ? json : json.field("pool_weight", weight(submitted.pool));
    }

    /** The pool's weight; null without pools. */
    private Number weight(String pool) {
        try {
            Option<Schedulable> found = spark.getPoolForName(pool.isEmpty() ? "default" : pool);
            return found.isDefined() ? (Number) found.get().weight() : null;
        } catch (RuntimeException stopped) {
            // Or the scheduler is not Spark's.
            return null;
        }
    }

    /**
     * Spark Connect stores its user in a tag, {@code
     * SparkConnect_OperationTag_User_NAME_Session_…}.
     */
    private static String user(String tags) {
        int start = tags.indexOf(CONNECT_USER);
        int end = tags.indexOf("_Session_", start + 1);
        return start < 0 || end < 0 ? "" : tags.substring(start + CONNECT_USER.length(), end);
    }

    private static String key(StageInfo stage) {
        return stage.stageId() + "." + stage.attemptNumber();
    }

    private static Json stage(StageInfo stage, Long execution) throws ReflectiveOperationException {
        Json json =
                new Json(2048)
                        .field("type", "stage")
                        .field("stage", stage.stageId())
                        .field("attempt", stage.attemptNumber())
                        .field("execution", execution)
                        .field("name", stage.name())
                        .field("tasks", stage.numTasks())
                        .field("submitted", (Number) orNull(stage.submissionTime()))
                        .field("completed", (Number) orNull(stage.completionTime()))
                        .field("failure", (String) orNull(stage.failureReason()))
                        .strings("scopes", scopes(stage))
                        .array("accumulators");
        for (Object each : ScalaSeq.toList(ACCUMULABLES.invoke(stage))) {
            AccumulableInfo accumulator = (AccumulableInfo) ((scala.Tuple2<?, ?>) each)._2();
            Object value = orNull(accumulator.value());
            if (value != null) {
                json.item().field("id", accumulator.id()).field("value", value.toString()).end();
            }
        }
        return json.endArray();
    }

    /** Names of the operators whose RDDs the stage runs, each once. */
    private static Set<String> scopes(StageInfo stage) throws ReflectiveOperationException {
        Set<String> names = new LinkedHashSet<>();
        List<Object> rdds = ScalaSeq.get(stage, RDDS);
        for (Object rdd : rdds) {
            Option<org.apache.spark.rdd.RDDOperationScope> scope = ((RDDInfo) rdd).scope();
            if (scope.isDefined()) {
                names.add(scope.get().name());
            }
        }
        return names;
    }

    /**
     * The operations of the RDDs from the last to the first, neighbours with the same name once.
     */
    private static List<String> rdds(StageInfo stage) throws ReflectiveOperationException {
        List<String> names = new ArrayList<>();
        for (Object each : ScalaSeq.get(stage, RDDS)) {
            RDDInfo rdd = (RDDInfo) each;
            String name = rdd.scope().isDefined() ? rdd.scope().get().name() : rdd.name();
            if (names.isEmpty() || !names.get(names.size() - 1).equals(name)) {
                names.add(name);
            }
            if (names.size() == MOST_RDDS) {
                break;
            }
        }
        return names;
    }

    /**
     * Packages of the methods in a stack, each once; each line is like {@code
     * org.apache.spark.rdd.RDD.count(RDD.scala:1296)}.
     */
    static Set<String> packages(String stack) {
        Set<String> names = new LinkedHashSet<>();
        for (String line : stack.split("\n")) {
            int method = line.lastIndexOf('.', Math.max(line.indexOf('('), 0));
            int type = line.lastIndexOf('.', method - 1);
            if (type > 0) {
                names.add(line.substring(0, type).trim());
            }
        }
        return names;
    }

    static Json task(SparkListenerTaskEnd event) {
        TaskInfo task = event.taskInfo();
        Json json =
                new Json(1024)
                        .field("type", "task")
                        .field("stage", event.stageId())
                        .field("attempt", event.stageAttemptId())
                        .field("task", task.taskId())
                        .field("index", task.index())
                        .field("task_attempt", task.attemptNumber())
                        .field("executor", task.executorId())
                        .field("host", task.host())
                        .field("launched_ms", task.launchTime())
                        .field("finished_ms", task.finishTime())
                        .field("status", task.status())
                        .field("speculative", task.speculative());
        // A task that never ran has no metrics; all of them are zero.
        TaskMetrics metrics = event.taskMetrics() == null ? new TaskMetrics() : event.taskMetrics();
        return json.field("cpu_ns", metrics.executorCpuTime())
                .field("run_ms", metrics.executorRunTime())
                .field("deserialize_cpu_ns", metrics.executorDeserializeCpuTime())
                .field("deserialize_ms", metrics.executorDeserializeTime())
                .field("gc_ms", metrics.jvmGCTime())
                .field("result_serialize_ms", metrics.resultSerializationTime())
                .field("result_bytes", metrics.resultSize())
                .field("input_bytes", metrics.inputMetrics().bytesRead())
                .field("input_records", metrics.inputMetrics().recordsRead())
                .field("output_bytes", metrics.outputMetrics().bytesWritten())
                .field("output_records", metrics.outputMetrics().recordsWritten())
                .field("shuffle_read_bytes", metrics.shuffleReadMetrics().totalBytesRead())
                .field("shuffle_read_records", metrics.shuffleReadMetrics().recordsRead())
                .field("shuffle_fetch_wait_ms", metrics.shuffleReadMetrics().fetchWaitTime())
                .field("shuffle_write_bytes", metrics.shuffleWriteMetrics().bytesWritten())
                .field("shuffle_write_records", metrics.shuffleWriteMetrics().recordsWritten())
                .field("shuffle_write_ns", metrics.shuffleWriteMetrics().writeTime())
                .field("memory_spilled_bytes", metrics.memoryBytesSpilled())
                .field("disk_spilled_bytes", metrics.diskBytesSpilled())
                .field("peak_memory_bytes", metrics.peakExecutionMemory());
    }

    private static Object orNull(Option<?> option) {
        return option.isDefined() ? option.get() : null;
    }
}
