package io.unfuse.spark.events;

import java.util.LinkedHashMap;
import java.util.Map;

/** A map that evicts its oldest entries: applications may run for months. */
final class Bounded<K, V> extends LinkedHashMap<K, V> {
    private static final long serialVersionUID = 1;

    private final int most;

    Bounded(int most) {
        this.most = most;
    }

    @Override
    protected boolean removeEldestEntry(Map.Entry<K, V> eldest) {
        return size() > most;
    }
}
