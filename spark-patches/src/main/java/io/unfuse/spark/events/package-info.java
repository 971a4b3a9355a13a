/**
 * Reports the application, its queries, jobs, stages and tasks as events for the profile, and
 * writes them as JSON.
 */
package io.unfuse.spark.events;
