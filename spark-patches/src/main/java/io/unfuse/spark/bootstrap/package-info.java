/**
 * Loads the agent into a running JVM of Spark. These classes see only the JDK and Spark's plugin
 * interface, since the agent's classes come with the agent, and an old JVM can load them, so that
 * it can say what it lacks.
 */
package io.unfuse.spark.bootstrap;
