/**
 * Adds the tab <em>Operators</em> to Spark's web pages and fills it with what a child process
 * reports.
 */
package io.unfuse.spark.ui;
