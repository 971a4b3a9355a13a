package io.unfuse.spark.events;

import io.unfuse.spark.common.Json;
import io.unfuse.spark.common.ScalaSeq;

import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.JobFailed;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;
import org.apache.spark.scheduler.SparkListenerApplicationStart;
import org.apache.spark.scheduler.SparkListenerExecutorAdded;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.StageInfo;

import java.util.ArrayList;
import java.util.List;

/**
 * Writes the {@code application}, {@code executor} and {@code job} events: the parts of a whole
 * run's time. Spark keeps events posted while the context starts until plugins have added their
 * listeners, so the executor of local mode is included. Such events precede the plugin's
 * application id, so these events contain it themselves.
 */
final class JobEvents {
    /** Properties that determine the size of a run. */
    private static final String[] SETTINGS = {
        "spark.task.cpus", "spark.unfuse.iterations", "spark.unfuse.bytes"
    };

    private final SparkContext spark;

    JobEvents(SparkContext spark) {
        this.spark = spark;
    }

    private Json event(String type) {
        return new Json().field("type", type).field("app", spark.applicationId());
    }

    Json started(SparkListenerApplicationStart event) {
        Json json =
                event("application")
                        .field("name", event.appName())
                        .field("started_ms", event.time())
                        .array("settings");
        SparkConf conf = spark.getConf();
        for (String name : SETTINGS) {
            if (conf.contains(name)) {
                json.item().field("name", name).field("value", conf.get(name)).end();
            }
        }
        return json.endArray();
    }

    Json ended(SparkListenerApplicationEnd event) {
        return event("application").field("ended_ms", event.time());
    }

    Json added(SparkListenerExecutorAdded event) {
        return event("executor")
                .field("executor", event.executorId())
                .field("host", event.executorInfo().executorHost())
                .field("cores", event.executorInfo().totalCores())
                .field("added_ms", event.time());
    }

    Json removed(SparkListenerExecutorRemoved event) {
        return event("executor")
                .field("executor", event.executorId())
                .field("removed_ms", event.time());
    }

    Json started(SparkListenerJobStart event) throws ReflectiveOperationException {
        List<Long> stages = new ArrayList<>();
        for (Object stage : ScalaSeq.get(event, StageParents.STAGES)) {
            stages.add((long) ((StageInfo) stage).stageId());
        }
        return event("job")
                .field("job", event.jobId())
                .field("started_ms", event.time())
                .numbers("stages", stages);
    }

    Json ended(SparkListenerJobEnd event) {
        return event("job")
                .field("job", event.jobId())
                .field("ended_ms", event.time())
                .field(
                        "failure",
                        event.jobResult() instanceof JobFailed
                                ? why((JobFailed) event.jobResult())
                                : null);
    }

    /** The first line; a stack follows it. */
    private static String why(JobFailed failed) {
        String message = failed.exception().getMessage();
        return message == null || message.isEmpty()
                ? failed.exception().getClass().getName()
                : message.split("\n", 2)[0];
    }
}
