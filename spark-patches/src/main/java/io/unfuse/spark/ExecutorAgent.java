package io.unfuse.spark;

import org.apache.spark.SparkConf;

/**
 * Gives executor processes the agent that this driver has, where the driver's agent was told to
 * ({@code executors=on}). The driver's plugins are made before executors are asked for, so the
 * setting is read in time; what the user set stays in front.
 */
final class ExecutorAgent {
    /**
     * Set by the agent to the complete flag, such as {@code
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
