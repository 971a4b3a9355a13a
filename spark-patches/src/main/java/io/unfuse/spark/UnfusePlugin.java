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
 * The plugin for {@code spark.plugins} in a JVM without {@code -agentpath}. It loads the agent into
 * this JVM, and passes all calls on to the plugin in the agent's jar.
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
        /** Does nothing if this JVM is not profiled. */
        private DriverPlugin profiling = new DriverPlugin() {};

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
            profiling.registerMetrics(appId, plugin);
        }

        @Override
        public void shutdown() {
            profiling.shutdown();
        }
    }

    private static final class Executor implements ExecutorPlugin {
        /** Does nothing if this JVM is not profiled. */
        private ExecutorPlugin profiling = new ExecutorPlugin() {};

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
            profiling.onTaskStart();
        }

        @Override
        public void onTaskSucceeded() {
            profiling.onTaskSucceeded();
        }

        @Override
        public void onTaskFailed(TaskFailedReason reason) {
            profiling.onTaskFailed(reason);
        }

        @Override
        public void shutdown() {
            profiling.shutdown();
        }
    }
}
