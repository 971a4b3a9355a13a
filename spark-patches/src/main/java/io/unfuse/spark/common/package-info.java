/** Shared by the other packages: the connection to the agent, its JSON, and Scala's collections. */
package io.unfuse.spark.common;
