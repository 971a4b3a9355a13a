/**
 * What the other packages share: the way to the agent, the JSON that it takes, and Scala's
 * collections.
 */
package io.unfuse.spark.common;
