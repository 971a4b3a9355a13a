/**
 * Reports what the application, its queries, jobs, stages and tasks do as events for the profile,
 * and writes them as JSON.
 */
package io.unfuse.spark.events;
