package io.unfuse.spark.bootstrap;

/** Why the agent is not loaded, for the person who reads the log. */
final class NotLoaded extends Exception {
    private static final long serialVersionUID = 1L;

    NotLoaded(String reason) {
        super(reason);
    }
}
