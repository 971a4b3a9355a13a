/** Traces records through tasks, to find the inputs of each output and their times. */
package io.unfuse.spark.records;
