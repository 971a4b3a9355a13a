package io.unfuse.spark.metrics;

/** Numbers about the profiler, in the order of the agent's {@code Metric}. */
enum ProfilerMetric {
    RECORDING("recording"),
    SAMPLES("samples"),
    LOST_SAMPLES("lostSamples"),
    SAMPLED_CPU_TIME("sampledCpuTimeNs"),
    OWN_CPU_TIME("ownCpuTimeNs"),
    WRITTEN_BYTES("writtenBytes"),
    LOST_EVENTS("lostEvents"),
    PYTHON_CPU_TIME("pythonCpuTimeNs");

    private final String key;

    ProfilerMetric(String key) {
        this.key = key;
    }

    /** Its name among Spark's metrics. */
    String key() {
        return key;
    }
}
