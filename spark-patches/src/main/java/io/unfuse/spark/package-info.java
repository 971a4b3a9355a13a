/** The Spark plugin, which starts what the other packages do. */
package io.unfuse.spark;
