/**
 * Follows records through tasks, to tell which inputs an output came from and how long each took.
 */
package io.unfuse.spark.records;
