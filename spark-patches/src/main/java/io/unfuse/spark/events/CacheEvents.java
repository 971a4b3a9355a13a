package io.unfuse.spark.events;

import io.unfuse.spark.common.Agent;
import io.unfuse.spark.common.Json;

import org.apache.spark.scheduler.SparkListenerBlockUpdated;
import org.apache.spark.storage.BlockUpdatedInfo;
import org.apache.spark.storage.RDDBlockId;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;

/**
 * Writes the {@code cached} events: the memory of the blocks of each cached RDD on each executor.
 */
final class CacheEvents {
    /** Maximum number of RDDs whose filling stage is remembered. */
    private static final int MOST = 10_000;

    /** The memory of an RDD's blocks on an executor. */
    private static final class Held {
        final Map<Integer, Long> blocks = new HashMap<>();
        long bytes;
    }

    /** By executor and RDD. */
    private final Map<String, Map<Integer, Held>> held = new HashMap<>();

    private final Map<Integer, Integer> stages = new Bounded<>(MOST);

    /** Notes the first stage that computes an RDD to be cached: it fills the cache. */
    void computes(int stage, int rdd) {
        stages.putIfAbsent(rdd, stage);
    }

    /** The event; null if no cached RDD changed. */
    Json updated(SparkListenerBlockUpdated event) {
        BlockUpdatedInfo info = event.blockUpdatedInfo();
        if (!(info.blockId() instanceof RDDBlockId)) {
            return null;
        }
        RDDBlockId block = (RDDBlockId) info.blockId();
        String executor = info.blockManagerId().executorId();
        Held ofRdd =
                held.computeIfAbsent(executor, id -> new HashMap<>())
                        .computeIfAbsent(block.rddId(), id -> new Held());
        // An update that drops a block may contain its former size.
        long bytes = info.storageLevel().useMemory() ? info.memSize() : 0;
        Long before =
                bytes > 0
                        ? ofRdd.blocks.put(block.splitIndex(), bytes)
                        : ofRdd.blocks.remove(block.splitIndex());
        ofRdd.bytes += bytes - (before == null ? 0 : before);
        return event(executor, block.rddId(), ofRdd.bytes);
    }

    /** Removes the memory of an executor. */
    void removed(String executor) {
        Map<Integer, Held> gone = held.remove(executor);
        if (gone != null) {
            for (int rdd : gone.keySet()) {
                Agent.event(event(executor, rdd, 0));
            }
        }
    }

    /** Removes all memory at the end of the application. */
    void ended() {
        for (String executor : new ArrayList<>(held.keySet())) {
            removed(executor);
        }
    }

    void unpersisted(int rdd) {
        held.forEach(
                (executor, rdds) -> {
                    if (rdds.remove(rdd) != null) {
                        Agent.event(event(executor, rdd, 0));
                    }
                });
        stages.remove(rdd);
    }

    private Json event(String executor, int rdd, long bytes) {
        return new Json()
                .field("type", "cached")
                .field("executor", executor)
                .field("rdd", rdd)
                .field("stage", stages.get(rdd))
                .field("since_ms", System.currentTimeMillis())
                .field("memory_bytes", bytes);
    }
}
