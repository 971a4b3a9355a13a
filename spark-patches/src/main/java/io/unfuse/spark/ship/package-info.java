/**
 * Copies finished files of the profile to the user's URI, and creates files that only their user
 * can read.
 */
package io.unfuse.spark.ship;
