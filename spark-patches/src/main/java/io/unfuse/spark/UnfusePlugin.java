package io.unfuse.spark;

import io.unfuse.spark.bootstrap.AgentLoader;

import org.apache.spark.SparkContext;
import org.apache.spark.TaskFailedReason;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;

import java.util.Collections;
import java.util.Map;

/**
 * What {@code spark.plugins} names where no {@code -agentpath} is given. It loads the agent into
 * this JVM, and passes everything on to the plugin that the agent brings.
 *
 * <p>Spark may load this class in a class loader below its own, and patched classes of Spark cannot
 * see that one. So the agent's classes are in the class path of the JVM, and this class reaches
 * them only through Spark's interfaces. It is in the published jar, and not in the jar that the
 * agent carries.
 */
public final class UnfusePlugin implements SparkPlugin {
    /** Where the driver's profile is, for executors. */
    private static final String DIR = "dir";

    @Override
    public DriverPlugin driverPlugin() {
        return new Driver();
    }

    @Override
    public ExecutorPlugin executorPlugin() {
        return new Executor();
    }

    private static final class Driver implements DriverPlugin {
        /** Null where this JVM is not profiled. */
        private DriverPlugin profiling;

        /** What it returns is passed to the plugin in executors. */
        @Override
        public Map<String, String> init(SparkContext context, PluginContext plugin) {
            SparkPlugin loaded = AgentLoader.loadInDriver(plugin.conf());
            if (loaded != null) {
                profiling = loaded.driverPlugin();
                profiling.init(context, plugin);
            }
            return Collections.singletonMap(DIR, AgentLoader.profileDir(plugin.conf()));
        }

        @Override
        public void registerMetrics(String appId, PluginContext plugin) {
            if (profiling != null) {
                profiling.registerMetrics(appId, plugin);
            }
        }

        @Override
        public void shutdown() {
            if (profiling != null) {
                profiling.shutdown();
            }
        }
    }

    private static final class Executor implements ExecutorPlugin {
        /** Null where this JVM is not profiled. */
        private ExecutorPlugin profiling;

        @Override
        public void init(PluginContext plugin, Map<String, String> extraConf) {
            // In local mode this is the driver.
            SparkPlugin loaded =
                    plugin.executorID().equals("driver")
                            ? AgentLoader.loadInDriver(plugin.conf())
                            : AgentLoader.loadInExecutor(plugin.conf(), extraConf.get(DIR));
            if (loaded != null) {
                profiling = loaded.executorPlugin();
                profiling.init(plugin, extraConf);
            }
        }

        @Override
        public void onTaskStart() {
            if (profiling != null) {
                profiling.onTaskStart();
            }
        }

        @Override
        public void onTaskSucceeded() {
            if (profiling != null) {
                profiling.onTaskSucceeded();
            }
        }

        @Override
        public void onTaskFailed(TaskFailedReason reason) {
            if (profiling != null) {
                profiling.onTaskFailed(reason);
            }
        }

        @Override
        public void shutdown() {
            if (profiling != null) {
                profiling.shutdown();
            }
        }
    }
}
