/**
 * The Spark plugin, which starts what the other packages do, and the way to the agent, which they
 * share.
 */
package io.unfuse.spark;
