/** Changes classes of Spark while they are loaded, and holds what the changed classes call. */
package io.unfuse.spark.patch;
