/** What Spark's metrics system and its listeners get to know about the profiler and contention. */
package io.unfuse.spark.metrics;
