package io.unfuse.spark;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;
import io.unfuse.spark.common.ScalaSeq;
import io.unfuse.spark.events.ExecutionListener;
import io.unfuse.spark.events.PythonWorkers;
import io.unfuse.spark.events.TaskMeter;
import io.unfuse.spark.metrics.ContentionMonitor;
import io.unfuse.spark.metrics.ProfilerSource;
import io.unfuse.spark.records.RecordTap;
import io.unfuse.spark.ship.SegmentShipper;
import io.unfuse.spark.ui.OperatorsTab;

import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.deploy.SparkHadoopUtil$;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * The part of unfuse that Spark knows as a plugin: on the driver it listens to plans, stages and
 * tasks, on an executor it marks the threads that run tasks. {@code PluginContainerPatch} adds it,
 * or {@link UnfusePlugin} passes everything on to it; it is not meant for {@code spark.plugins}.
 */
public final class ProfilingPlugin implements SparkPlugin {
    /**
     * The Scala sequence {@code plugins} with ours at its end, or {@code plugins} itself if that
     * fails.
     */
    public static Object addTo(Object plugins) {
        try {
            List<Object> all = new ArrayList<>(ScalaSeq.toList(plugins));
            for (Object plugin : all) {
                if (plugin instanceof ProfilingPlugin) {
                    return plugins;
                }
            }
            all.add(new ProfilingPlugin());
            return ScalaSeq.fromList(all);
        } catch (Throwable error) {
            Agent.failed("adding the Spark plugin", error);
            return plugins;
        }
    }

    @Override
    public DriverPlugin driverPlugin() {
        return new Driver();
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new Executor();
    }

    private static final class Driver implements DriverPlugin {
        private SparkContext spark;
        private ContentionMonitor contention;

        @Override
        public Map<String, String> init(SparkContext context, PluginContext plugin) {
            spark = context;
            try {
                ExecutorAgent.addTo(context.conf());
                if (RecordTap.isOn()) {
                    RecordTap.readRows(context.conf());
                }
                context.addSparkListener(new ExecutionListener(context));
                SegmentShipper.start(context::hadoopConfiguration);
            } catch (Throwable error) {
                Agent.failed("listening to Spark", error);
            }
            return Collections.emptyMap();
        }

        // Called when the application has its id, which is not the case in init.
        @Override
        public void registerMetrics(String appId, PluginContext plugin) {
            try {
                Agent.event(
                        app(appId, spark.appName(), plugin, true)
                                .field("memory", spark.isLocal() ? memory() : null));
            } catch (Throwable error) {
                Agent.failed("reporting the application", error);
            }
            OperatorsTab.addTo(spark);
            contention = ContentionMonitor.start(spark, appId);
            ProfilerSource.register(contention);
        }

        @Override
        public void shutdown() {
            if (contention != null) {
                contention.stop();
            }
            Agent.flush(Agent.FLUSH_MILLIS);
            SegmentShipper.finish(false);
        }
    }

    private static final class Executor implements ExecutorPlugin {
        @Override
        public void init(PluginContext plugin, Map<String, String> extraConf) {
            try {
                startMeter();
                SegmentShipper.start(
                        () -> SparkHadoopUtil$.MODULE$.get().newConfiguration(plugin.conf()));
                // In local mode the executor is the driver, which reports the process itself.
                if (!plugin.executorID().equals("driver")) {
                    Agent.event(
                            app(
                                            plugin.conf().getAppId(),
                                            plugin.conf().get("spark.app.name", ""),
                                            plugin,
                                            false)
                                    .field("memory", memory()));
                    ProfilerSource.register(null);
                }
            } catch (Throwable error) {
                Agent.failed("reporting the executor", error);
            }
        }

        @Override
        public void onTaskStart() {
            try {
                TaskContext task = TaskContext.get();
                String execution = task.getLocalProperty("spark.sql.execution.id");
                Agent.taskStart(
                        task.stageId(),
                        task.stageAttemptNumber(),
                        task.taskAttemptId(),
                        execution == null ? -1 : Long.parseLong(execution));
                TaskMeter.taskStarted(task);
                RecordTap.taskStarted(task);
                PythonWorkers.taskStarted(task);
            } catch (Throwable error) {
                Agent.failed("marking a task", error);
            }
        }

        @Override
        public void onTaskSucceeded() {
            taskEnded(true);
        }

        @Override
        public void onTaskFailed(TaskFailedReason reason) {
            taskEnded(false);
        }

        private static void startMeter() {
            try {
                TaskMeter.start();
            } catch (Throwable error) {
                Agent.failed("starting the thread that reads what tasks use", error);
            }
        }

        private static void taskEnded(boolean succeeded) {
            Agent.taskEnd();
            RecordTap.taskEnded(succeeded);
            try {
                TaskMeter.taskEnded(succeeded);
            } catch (Throwable error) {
                Agent.failed("reading what a task used", error);
            }
            PythonWorkers.taskEnded();
        }

        @Override
        public void shutdown() {
            TaskMeter.stop(Agent.FLUSH_MILLIS);
            Agent.flush(Agent.FLUSH_MILLIS);
            SegmentShipper.finish(false);
        }
    }

    /**
     * The host name in Spark's tasks; {@code hostname()} fails on executors, whose RPC environment
     * has no address.
     */
    private static String executorHost() {
        return SparkEnv.get().blockManager().blockManagerId().host();
    }

    /** Bytes that Spark's memory manager can assign; called when no task has any. */
    private static Number memory() {
        SparkEnv env = SparkEnv.get();
        return env.memoryManager() == null
                ? null
                : (Number)
                        (env.memoryManager().maxOnHeapStorageMemory()
                                + env.memoryManager().maxOffHeapStorageMemory());
    }

    private static Json app(String id, String name, PluginContext plugin, boolean isDriver) {
        return new Json()
                .field("type", "app")
                .field("app", id)
                .field("name", name)
                .field("spark", org.apache.spark.package$.MODULE$.SPARK_VERSION())
                .field("executor", plugin.executorID())
                .field("host", isDriver ? plugin.hostname() : executorHost())
                .field("driver", isDriver);
    }
}
