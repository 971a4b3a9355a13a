package io.unfuse.spark;

import org.apache.spark.SparkConf;

/**
 * Gives executor processes the driver's agent, if requested ({@code executors=on}). The driver's
 * plugins are created before executors are requested, so the setting is read in time; the user's
 * own setting comes first.
 */
final class ExecutorAgent {
    /**
     * The complete flag, set by the agent, such as {@code
     * -agentpath:/opt/libunfuse.so=dir=/tmp/profile}.
     */
    static final String PROPERTY = "unfuse.executor.agentpath";

    private static final String OPTIONS = "spark.executor.extraJavaOptions";

    private ExecutorAgent() {}

    static void addTo(SparkConf conf) {
        String flag = System.getProperty(PROPERTY);
        String options = conf.get(OPTIONS, "");
        if (flag != null && !options.contains("libunfuse.so")) {
            conf.set(OPTIONS, (options + " " + flag).trim());
        }
    }
}
