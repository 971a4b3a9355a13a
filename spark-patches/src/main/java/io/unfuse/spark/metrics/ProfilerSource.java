package io.unfuse.spark.metrics;

import com.codahale.metrics.Gauge;
import com.codahale.metrics.MetricRegistry;

import io.unfuse.spark.common.Agent;

import org.apache.spark.SparkEnv;
import org.apache.spark.metrics.source.Source;

import java.util.function.DoubleSupplier;
import java.util.function.LongSupplier;

/**
 * The profiler as a source of Spark's metrics. It has the name that Spark gives to metrics of
 * {@code UnfusePlugin}, also in a JVM with {@code -agentpath}, whose plugin Spark knows by another
 * name. A gauge costs nothing until a sink reads it.
 */
public final class ProfilerSource implements Source {
    private static final String NAME = "plugin.io.unfuse.spark.UnfusePlugin";

    private final MetricRegistry registry = new MetricRegistry();

    private ProfilerSource() {
        for (ProfilerMetric metric : ProfilerMetric.values()) {
            gauge(metric.key(), (LongSupplier) () -> Agent.metric(metric.ordinal()));
        }
    }

    private void gauge(String key, LongSupplier value) {
        registry.register(key, (Gauge<Long>) value::getAsLong);
    }

    private void gauge(String key, DoubleSupplier value) {
        registry.register(key, (Gauge<Double>) value::getAsDouble);
    }

    /**
     * Adds the source to the metrics of this JVM.
     *
     * @param contention what the driver knows of contention; null if it does not compute it
     */
    public static void register(ContentionMonitor contention) {
        try {
            ProfilerSource source = new ProfilerSource();
            if (contention != null) {
                source.gauge("contention.query", () -> contention.worst().query);
                source.gauge("contention.lostSeconds", () -> contention.worst().lostSeconds);
                source.gauge("contention.lostPart", () -> contention.worst().lostPart);
                source.gauge("contention.culpritSeconds", () -> contention.worst().culpritSeconds);
                source.gauge(
                        "contention.culpritSecondsLow", () -> contention.worst().culpritSecondsLow);
                source.gauge(
                        "contention.culpritSecondsHigh",
                        () -> contention.worst().culpritSecondsHigh);
            }
            SparkEnv.get().metricsSystem().registerSource(source);
        } catch (Throwable error) {
            Agent.failedWithoutLoss("adding the profiler to Spark's metrics", error);
        }
    }

    @Override
    public String sourceName() {
        return NAME;
    }

    @Override
    public MetricRegistry metricRegistry() {
        return registry;
    }
}
