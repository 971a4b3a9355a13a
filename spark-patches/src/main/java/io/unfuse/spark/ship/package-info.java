/**
 * Copies finished files of the profile to where the user wants them, and makes files that only
 * their user can read.
 */
package io.unfuse.spark.ship;
