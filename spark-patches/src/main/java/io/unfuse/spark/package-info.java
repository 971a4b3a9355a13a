/** The Spark plugin, which starts the other packages. */
package io.unfuse.spark;
