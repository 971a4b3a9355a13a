/**
 * Changes classes of Spark when they are loaded; contains the code that the changed classes call.
 */
package io.unfuse.spark.patch;
