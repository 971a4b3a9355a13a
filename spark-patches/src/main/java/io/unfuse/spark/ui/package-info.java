/**
 * Adds the tab <em>Operators</em> to Spark's web pages and fills it with a report from a child
 * process.
 */
package io.unfuse.spark.ui;
